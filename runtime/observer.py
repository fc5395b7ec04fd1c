"""Events of the runtime. `app.observability.metrics` counts them for Prometheus."""


class Observer:
    """Ignores all events; subclasses override the methods that they need.

    The runtime calls it on the event loop only; methods must return at once.
    """

    def batch(
        self, model: str, inputs: int, tokens: int, padding: float, processor_seconds: float
    ) -> None:
        """A batch has run: its sentences, their tokens, the share of padding, and its thread's processor time."""

    def untypical(self, model: str, inputs: int) -> None:
        """The number of answered inputs since the last call that lie farther out than nearly all training sentences."""

    def cache(self, name: str, hits: int, misses: int) -> None:
        """A request's distinct keys in a cache ("vector"): those it holds, and others."""
