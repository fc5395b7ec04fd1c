"""The encoders by name. `build` is the one place where a configuration meets a module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Literal

from models.dsa import DSA, CNNSelfAttention
from models.lama import LAMA, SAN
from models.lama_baselines import Average, BiGRUMax, CNNMax, Transformer
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


DSA_PAPER = "Yoon et al. 2018, Dynamic Self-Attention: Computing Attention over Words Dynamically"
LAMA_PAPER = "Mehta et al. 2019, Low Rank Factorization for Compact Multi-Head Self-Attention"

ENCODERS: dict[str, Entry] = {
    "ms-san": Entry(
        MSSAN,
        "Qi et al. 2020, Multiple Structural Priors Guided Self Attention Network",
        "quadratic",
    ),
    "dsa": Entry(DSA, DSA_PAPER, "linear"),
    "dsa-multiple": Entry(partial(DSA, attentions=8, size=300), DSA_PAPER, "linear"),
    "cnn-self-attention": Entry(CNNSelfAttention, DSA_PAPER, "linear"),
    "lama": Entry(LAMA, LAMA_PAPER, "linear"),
    "lama-ctx": Entry(partial(LAMA, document_context=True), LAMA_PAPER, "linear"),
    "san": Entry(SAN, "Lin et al. 2017, A Structured Self-Attentive Sentence Embedding", "linear"),
    "bi-gru-max": Entry(BiGRUMax, LAMA_PAPER, "linear"),
    "cnn-max": Entry(
        CNNMax,
        "Kim 2014, Convolutional Neural Networks for Sentence Classification",
        "linear",
    ),
    "transformer": Entry(
        Transformer, "Vaswani et al. 2017, Attention Is All You Need", "quadratic"
    ),
    "average": Entry(Average, LAMA_PAPER, "linear"),
}


def build(name: str, config: Mapping[str, object]) -> Encoder:
    """The encoder `name` with the keywords of `config`. Raises ValueError naming what is known.

    `max_tokens`, which every run has, reaches only an encoder that depends on it.
    """
    if name not in ENCODERS:
        raise ValueError(f"no encoder {name!r}: known are {', '.join(sorted(ENCODERS))}")
    make = ENCODERS[name].make
    if "max_tokens" not in signature(make).parameters:
        config = {key: value for key, value in config.items() if key != "max_tokens"}
    try:
        return make(**config)
    except TypeError as error:
        raise ValueError(f"encoder {name}: {error}") from error
