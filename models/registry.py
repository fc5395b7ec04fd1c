"""The encoders by name. Only `build` makes a module from a configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal

import torch
from torch import nn

from heedful.models.aligned_words import AlignedNLIHead
from heedful.models.disan import DiSAN
from heedful.models.dsa import DSA
from heedful.models.heads import (
    BatchNormClassificationHead,
    BatchNormNLIHead,
    ClassificationHead,
    NLIHead,
    RelatednessHead,
)
from heedful.models.lama import LAMA
from heedful.models.ms_san import MSSAN
from heedful.models.sentence import Encoder


@dataclass(frozen=True, slots=True)
class Entry:
    """An encoder: its constructor, its paper, and how its cost grows with the tokens.

    `make` takes keywords, `dim` among them: the size of a word vector. `nli` and `classification`
    build the paper's heads.
    """

    make: Callable[..., Encoder]
    paper: str
    cost: Literal["linear", "quadratic"]
    nli: Callable[..., nn.Module] = NLIHead
    classification: Callable[..., nn.Module] = ClassificationHead


MS_SAN = "Qi et al. 2020, Multiple Structural Priors Guided Self Attention Network"


def _aligned(size: int, *, gated: bool, **config: Any) -> Entry:
    """MS-SAN whose head for entailment also aligns the words of both sentences, `size` features each."""
    return Entry(
        partial(MSSAN, first_words=size, **config),
        f"{MS_SAN}; words aligned as in Parikh et al. 2016",
        "quadratic",
        nli=partial(AlignedNLIHead, size=size, gated=gated),
    )


DISAN = "Shen et al. 2018, DiSAN: Directional Self-Attention Network"


def disan(make: Callable[..., Encoder], cost: Literal["linear", "quadratic"]) -> Entry:
    """DiSAN or a baseline of its paper, with the paper's heads: ELU, signed p - h.

    Dropout keeps 0.75 for NLI, 0.8 for sentiment.
    """
    return Entry(
        make,
        DISAN,
        cost,
        nli=partial(NLIHead, signed=True, activation=nn.ELU, dropout=0.25),
        classification=partial(ClassificationHead, activation=nn.ELU, dropout=0.2),
    )


DSA_PAPER = "Yoon et al. 2018, Dynamic Self-Attention: Computing Attention over Words Dynamically"


def dsa(make: Callable[..., Encoder], nli: Callable[..., nn.Module] = BatchNormNLIHead) -> Entry:
    """DSA or the baseline of its paper, with the paper's heads, which have batch norm."""
    return Entry(make, DSA_PAPER, "linear", nli=nli, classification=BatchNormClassificationHead)


LAMA_PAPER = "Mehta et al. 2019, Low Rank Factorization for Compact Multi-Head Self-Attention"


def lama(
    make: Callable[..., Encoder],
    paper: str = LAMA_PAPER,
    cost: Literal["linear", "quadratic"] = "linear",
) -> Entry:
    """LAMA or a baseline of its paper, with the paper's head: 512 units, dropout 0.4."""
    head = partial(ClassificationHead, hidden=512, dropout=0.4)
    return Entry(make, paper, cost, classification=head)


ENCODERS: dict[str, Entry] = {
    "ms-san": Entry(MSSAN, MS_SAN, "quadratic"),
    "ms-san-bert": Entry(partial(MSSAN, cls=True), MS_SAN, "quadratic"),  # over a transformer
    "ms-san-words": _aligned(160, gated=True, first_states=True),
    "ms-san-bert-words": _aligned(320, gated=False, cls=True),  # over a transformer
    "disan": disan(DiSAN, "quadratic"),
    "dsa": dsa(DSA),
    "dsa-multiple": dsa(
        partial(DSA, attentions=8, size=300), partial(BatchNormNLIHead, hidden=512, dropout=0.4)
    ),
    "lama": lama(LAMA),
    "lama-ctx": lama(partial(LAMA, document_context=True)),
}
"""By name; `tools.encoders` adds the baselines of the papers."""


def head_of(
    name: str, kind: Literal["nli", "classification", "relatedness"]
) -> Callable[..., nn.Module]:
    """The constructor of the paper's head for a kind of task; `hidden` and `dropout` default to the paper's values."""
    entry = ENCODERS[name]
    return {
        "nli": entry.nli,
        "classification": entry.classification,
        "relatedness": RelatednessHead,
    }[kind]


def head_sizes(name: str, kind: Literal["nli", "classification", "relatedness"]) -> dict[str, Any]:
    """`hidden` and `dropout` of the paper's head for a kind of task."""
    parameters = signature(head_of(name, kind)).parameters
    return {size: parameters[size].default for size in ("hidden", "dropout")}


@dataclass(frozen=True, slots=True)
class Summary:
    """An encoder at its paper's sizes. Counts exclude the word vectors, as in the papers."""

    paper: str
    dim: int
    """Size of a sentence vector."""
    encoder: int
    with_nli_head: int
    """Parameters of the encoder, and of the encoder with the paper's head for three classes."""


def summary(name: str) -> Summary:
    """The row of `heedful list --encoders`. Raises ValueError as `build` does."""
    encoder = build(name, {})
    entry = ENCODERS[name]
    parameters = _parameters(encoder)
    with_head = parameters + _parameters(entry.nli(encoder.dim))
    return Summary(entry.paper, encoder.dim, parameters, with_head)


def reads_trees(name: str, config: Mapping[str, object]) -> bool:
    """Whether the encoder reads trees, so that its texts must be parsed. Raises ValueError as `build` does."""
    with torch.device("meta"):  # no weights, and no random numbers drawn
        return "heads" in build(name, config).inputs


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def build(name: str, config: Mapping[str, object]) -> Encoder:
    """The encoder `name` with the keywords of `config`.

    `max_tokens`, which every run has, is passed only to an encoder that takes it. Raises ValueError naming the known
    encoders, or a keyword that is unknown or has a value that it cannot have.
    """
    if name not in ENCODERS:
        raise ValueError(f"no encoder {name!r}: known are {', '.join(sorted(ENCODERS))}")
    make = ENCODERS[name].make
    parameters = signature(make).parameters
    if "max_tokens" not in parameters:
        config = {key: value for key, value in config.items() if key != "max_tokens"}
    for key, value in config.items():
        if key in parameters:
            _require_type(key, value, parameters[key].annotation)
    try:
        return make(**config)
    except TypeError as error:
        raise ValueError(f"encoder {name}: {error}") from error


def _require_type(key: str, value: object, kind: object) -> None:
    """Raise ValueError where an encoder's keyword must be a whole number or a switch, and the value is not."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if kind is int and not is_count:
        raise ValueError(f"{key} is {value!r}: give a whole number from 1")
    if kind is bool and not isinstance(value, bool):
        raise ValueError(f"{key} is {value!r}: give true or false")
