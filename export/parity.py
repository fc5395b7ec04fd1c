"""Compare the exported graphs with the torch model, on shapes other than the one that was traced."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnxruntime
import torch
from torch import nn

from heedful.export.errors import ParityError
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.engine.graphs import Feeds
from heedful.text import composition
from heedful.text.arrays import Floats, Ints
from heedful.text.batch import Batch, Sentence, collate
from heedful.text.graph import open_session
from heedful.text.vocab import UNKNOWN

TOLERANCE = 1e-4
"""Largest difference allowed of an embedding's value, or of a logit, relative to the largest logit above 1."""
SEED = 0
EXPLAINED = 1000
"""Size of the largest batch on which the explain graph is compared: it serves single sentences."""
ALPHAS = (1.0, 0.0, 0.1, 0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    batch: Batch
    alpha: float


@dataclass(frozen=True, slots=True)
class Parity:
    """Largest differences: `error` from the rounded torch model, `loss` from the model before rounding."""

    error: float
    loss: float
    cases: int


@dataclass(frozen=True, slots=True)
class ParityModel:
    """A sentence encoder and, unless the kind has none, the head with the names of its inputs."""

    encoder: SentenceEncoder
    head: nn.Module | None
    head_inputs: tuple[str, ...]  # one sentence, or two


def check(
    graphs: Mapping[str, bytes],
    rounded: ParityModel,
    unrounded: ParityModel,
    words: int,
    max_tokens: int,
    max_pieces: int | None = None,
    composed: int = 0,
) -> Parity:
    """Compare `graphs` ("encoder", maybe "head", maybe "explain") with both models on every case.

    Raises ParityError, which names the case, if a difference to `rounded` is above TOLERANCE or NaN.
    """
    sessions = {name: open_session(graph) for name, graph in graphs.items()}
    error, loss, count = 0.0, 0.0, 0
    for case in cases(words, max_tokens, max_pieces, composed):
        feeds = _feeds(case, rounded.encoder)
        outputs = _run_graphs(sessions, feeds, rounded.head_inputs)
        expected, exact = _run_torch(rounded, feeds), _run_torch(unrounded, feeds)
        if "explain" in sessions and case.batch.ids.size <= EXPLAINED:
            pairs = explained(sessions["explain"], rounded.encoder, case)
            outputs |= {name: values for name, (values, _) in pairs.items()}
            expected |= {name: values for name, (_, values) in pairs.items()}
        for graph, values in outputs.items():
            # Logits grow with training, and their float32 rounding errors in proportion.
            size = max(1.0, float(np.abs(expected[graph]).max())) if graph == "head" else 1.0
            difference = float(np.abs(values - expected[graph]).max()) / size
            if not difference <= TOLERANCE:  # written so that NaN fails as well
                raise ParityError(
                    f"the {graph} graph is {difference:.1e} away from torch on {case.name}: "
                    f"more than {TOLERANCE:.0e}"
                )
            error = max(error, difference)
            if graph in exact:
                loss = max(loss, float(np.abs(values - exact[graph]).max()))
        count += 1
    return Parity(error, loss, count)


def explained(
    session: onnxruntime.InferenceSession, model: SentenceEncoder, case: Case
) -> dict[str, tuple[Floats, Floats]]:
    """The vectors of the explain graph and of torch: with all priors, and with each one switched off."""
    pairs = {}
    priors = model.encoder.priors
    for off in (None, *priors):
        feeds = _feeds(case, model)
        feeds |= {prior: np.array(prior != off) for prior in priors}
        (vectors,) = session.run(["embedding"], feeds)
        with torch.inference_mode():
            explanation = model.explain(**{name: torch.as_tensor(v) for name, v in feeds.items()})
        pairs["explain" + (f" without {off}" if off else "")] = (
            vectors,
            explanation.sentence.numpy(),
        )
    return pairs


def cases(
    words: int, max_tokens: int, max_pieces: int | None = None, composed: int = 0
) -> Iterator[Case]:
    """Batches over a vocabulary of `words`, with sizes, lengths, trees and alphas at their extremes.

    With `max_pieces` the ids are word pieces: two a word on average, and in one case the maximum.
    With `composed` rows, a third of the words are composed of random features.
    """
    rng = np.random.default_rng(SEED)

    def sentence(n: int, heads: Ints, *, unknown: bool, full: bool) -> Sentence:
        size, pieces = n, None
        if max_pieces is not None:
            size = max_pieces if full else min(2 * n + 2, max_pieces)
            pieces = 1 + rng.multinomial(size - 2 - n, np.full(n, 1 / n))
        ids = np.full(size, UNKNOWN) if unknown else rng.integers(UNKNOWN, words, size)
        unlisted = np.flatnonzero(rng.random(n) < (1 if unknown else 1 / 3)) if composed else ()
        if not len(unlisted):
            return Sentence(ids, heads, pieces)
        ids[unlisted] = -1 - np.arange(len(unlisted))
        features = rng.integers(0, composed, (len(unlisted), composition.FEATURES))
        return Sentence(ids, heads, features=features)

    def batch(
        lengths: Ints, tree: Callable[[int], Ints], *, unknown: bool = False, full: bool = False
    ) -> Batch:
        return collate(
            [
                sentence(n, tree(n), unknown=unknown, full=full)
                for n in np.minimum(lengths, max_tokens).tolist()
            ]
        )

    def mixed(size: int, longest: int) -> Ints:
        return rng.integers(1, longest + 1, size)

    trees: dict[str, Callable[[int], Ints]] = {
        "chain": lambda n: np.maximum(np.arange(n) - 1, 0),  # the deepest tree
        "flat tree": lambda n: np.zeros(n, np.int64),
        "forest": lambda n: _forest(rng, n),
        "row of roots": np.arange,
    }
    for name, tree in trees.items():
        yield Case(f"a {name} of {max_tokens} tokens", batch(np.array([max_tokens]), tree), 1.0)
    for length in (1, 2, 3):
        yield Case(
            f"a sentence of length {length}", batch(np.array([length]), trees["forest"]), 0.5
        )
    longest_and_shortest = batch(np.array([max_tokens, 1]), trees["forest"])
    yield Case("the longest and the shortest sentence", longest_and_shortest, 1.0)
    yield Case("unknown words only", batch(mixed(4, 12), trees["forest"], unknown=True), 1.0)
    for alpha in ALPHAS:
        yield Case(f"7 sentences at alpha {alpha}", batch(mixed(7, 30), trees["forest"]), alpha)
    for size, longest in ((64, 50), (512, 20)):
        yield Case(f"{size} sentences", batch(mixed(size, longest), trees["forest"]), 1.5)
    if max_pieces is not None:
        full = batch(np.array([1, max_tokens]), trees["forest"], full=True)
        yield Case(f"two sentences of {max_pieces} pieces", full, 1.0)


def _forest(rng: np.random.Generator, length: int) -> Ints:
    """Tokens in random order, each a root (one in ten) or attached to an earlier one."""
    order = rng.permutation(length)
    heads = order.copy()
    for i, token in enumerate(order):
        heads[token] = token if i == 0 or rng.random() < 0.1 else order[rng.integers(i)]
    return heads


def _feeds(case: Case, model: SentenceEncoder) -> Feeds:
    return case.batch.feeds(("ids", "lengths", *model.inputs), case.alpha)


def _run_graphs(
    sessions: Mapping[str, onnxruntime.InferenceSession],
    feeds: Mapping[str, npt.NDArray[np.generic]],
    head_inputs: tuple[str, ...],
) -> dict[str, Floats]:
    """The embeddings and, with a head, its logits (for pairs: of each embedding and the one before)."""
    (embedding,) = sessions["encoder"].run(None, dict(feeds))
    outputs = {"encoder": embedding}
    if "head" in sessions:
        sides = dict(zip(head_inputs, (embedding, np.roll(embedding, 1, 0)), strict=False))
        (outputs["head"],) = sessions["head"].run(None, sides)
    return outputs


def _run_torch(
    model: ParityModel, feeds: Mapping[str, npt.NDArray[np.generic]]
) -> dict[str, Floats]:
    """The same as `_run_graphs`, from torch."""
    with torch.inference_mode():
        embedding = model.encoder(**{name: torch.as_tensor(v) for name, v in feeds.items()})
        outputs = {"encoder": embedding.numpy()}
        if model.head is not None:
            sides = dict(zip(model.head_inputs, (embedding, embedding.roll(1, 0)), strict=False))
            outputs["head"] = model.head(**sides).numpy()
    return outputs
