"""Which route a request's path belongs to."""

from collections.abc import Iterable

from starlette.routing import compile_path


def without_slash(path: str) -> str:
    """The path without superfluous slashes at its end."""
    return path.rstrip("/") or path[:1]


class Paths:
    """The service's routes; some have parameters, as in /v1/models/{model:path}.

    That one's parameter may hold slashes; its route is called /v1/models/{model}.
    """

    def __init__(self, routes: Iterable[str]) -> None:
        routes = set(routes)
        self._fixed = frozenset(route for route in routes if "{" not in route)
        self._patterns = [compile_path(route)[:2] for route in sorted(routes - self._fixed)]

    def find(self, path: str) -> tuple[str, dict[str, str]] | None:
        """The route and its parameters' values, or None."""
        if path in self._fixed:
            return path, {}
        for pattern, route in self._patterns:
            if match := pattern.match(path):
                return route, match.groupdict()
        return None

    def resolve(self, path: str) -> tuple[str, str, dict[str, str]]:
        """The path without a superfluous slash at its end, its route or "other", and its parameters."""
        shorter = without_slash(path)
        if found := self.find(shorter):
            return shorter, *found
        return path, "other", {}
