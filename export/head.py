"""The head of a bundle, run on one thread of the CPU."""

from collections.abc import Callable, Sequence

from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import HEAD
from heedful.runtime.engine.graphs import head_inputs
from heedful.runtime.engine.session import OrtSession
from heedful.text.arrays import Floats


def open_head(bundle: Bundle) -> Callable[[Sequence[Floats]], Floats] | None:
    """Vectors (N, D), one array per side -> logits (N, C). None for a bundle without a head."""
    if HEAD not in bundle.files:
        return None
    session = OrtSession(bundle.files[HEAD], "cpu", 1)
    names = head_inputs(bundle.card)
    return lambda sides: session.run(dict(zip(names, sides, strict=True)))
