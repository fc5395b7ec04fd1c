"""The encoders by name. `build` is the one place where a configuration meets a module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from models.ms_san import MSSAN
from models.sentence import Encoder


@dataclass(frozen=True, slots=True)
class Entry:
    """An encoder: what builds it, whose it is, and how its cost grows with the tokens.

    `make` takes keywords, `dim` among them: the size of a word vector.
    """

    make: Callable[..., Encoder]
    paper: str
    cost: Literal["linear", "quadratic"]


ENCODERS: dict[str, Entry] = {
    "ms-san": Entry(
        MSSAN,
        "Qi et al. 2020, Multiple Structural Priors Guided Self Attention Network",
        "quadratic",
    ),
}


def build(name: str, config: Mapping[str, object]) -> Encoder:
    """The encoder `name` with the keywords of `config`. Raises ValueError naming what is known."""
    if name not in ENCODERS:
        raise ValueError(f"no encoder {name!r}: known are {', '.join(sorted(ENCODERS))}")
    try:
        return ENCODERS[name].make(**config)
    except TypeError as error:
        raise ValueError(f"encoder {name}: {error}") from error
