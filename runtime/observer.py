"""What the runtime tells whoever watches it. `app.metrics` implements it with Prometheus."""

from typing import Protocol


class Observer(Protocol):
    """Called on the event loop, never from another thread; must return at once."""

    def batch(self, model: str, inputs: int, tokens: int, padding: float) -> None:
        """A batch has run: its sentences, their tokens, the share of its cells that held none."""

    def queue(self, stage: str, inputs: int) -> None:
        """So many inputs wait now. `stage` is "parse" or the model's name."""

    def cache(self, name: str, hits: int, misses: int) -> None:
        """A request's different keys in a cache ("parse", "vector"): `misses` of them were made."""

    def worker(self, kind: str, state: str, n: int) -> None:
        """So many workers of a kind ("parse") are now in a state ("ready", "starting", "down")."""


class NoObserver:
    """Watches nothing."""

    def batch(self, model: str, inputs: int, tokens: int, padding: float) -> None:
        pass

    def queue(self, stage: str, inputs: int) -> None:
        pass

    def cache(self, name: str, hits: int, misses: int) -> None:
        pass

    def worker(self, kind: str, state: str, n: int) -> None:
        pass
