"""A bundle with its sessions, ready to answer."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import log
from typing import Literal

import numpy as np
from onnxruntime import OrtValue

from heedful.runtime.answers import log_softmax
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8, GOLDEN, HEAD
from heedful.runtime.bundles.golden import outputs, sides
from heedful.runtime.device import Resolved
from heedful.runtime.engine.graphs import check_encoder, check_head
from heedful.runtime.engine.session import EncoderRunner, FunctionRunner, OrtSession, head_runner
from heedful.runtime.engine.work import Steps, Work, parse, run_now
from heedful.runtime.errors import BundleError, InferenceFailed, OutOfMemory, ProviderError
from heedful.runtime.explain.graph import ExplainGraph, open_checked
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence
from heedful.text.errors import GraphError
from heedful.text.graph import CUDA
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.natural_logic import told_label
from heedful.text.pairs import nearest_sentences
from heedful.text.parse import Parse, Parser
from heedful.text.whole_text import WholeText

REMEDY = "copy the bundle again, export it again, or serve it where it was made"
ROWS_AT_ONCE = 32
"""Sentences that are read without a pause, both of each pair: 1 ms, or 2 ms where all words are composed."""
MOVED_SHARE = 0.9
"""Of the model's label's probability, where the words of a pair tell another label."""
WARM_UP_LENGTHS = (1, 8, 32, 128)
"""Lengths of the sentences that warm up a session, each in a batch of one and in a full batch."""


class LoadedModel:
    """A bundle with open sessions, which run in the caller's threads."""

    def __init__(self, bundle: Bundle, device: Resolved, threads: int) -> None:
        """Open the sessions and check them, which blocks while graphs are optimised.

        Raises ProviderError, BundleError.
        """
        self.card = bundle.card
        self.vocab = bundle.vocab
        self.golden, self.typical = bundle.golden, bundle.typical
        self.deviation: float | None = None
        """Largest change of a value of the golden vectors, at the last check; None without golden vectors."""
        files = bundle.files
        int8 = ENCODER_INT8 in files and device == "cpu"
        self.precision: Literal["int8", "float32"] = "int8" if int8 else "float32"
        encoder, explain = (ENCODER_INT8, EXPLAIN_INT8) if int8 else (ENCODER, EXPLAIN)
        self.explain_graph: ExplainGraph | None = None
        shared: Mapping[str, OrtValue] = {}
        if explain in files:
            self.explain_graph = open_checked(files, bundle.card, bundle.vocab, explain)
            shared = self.explain_graph.shared
            self._explain_files = {name: files[name] for name in (ENCODER, EXPLAIN)}
        session = _open(bundle, encoder, device, threads, shared)
        check_encoder(session.graph, bundle.card, encoder, bundle.vocab)
        self.encoder = EncoderRunner(bundle.card, session)
        self._head: FunctionRunner[Floats] | None = None
        if bundle.card.kind != "embedding":
            head = _open(bundle, HEAD, device, threads)
            check_head(head.graph, bundle.card)
            self._head = head_runner(bundle.card, head)

    @cached_property
    def gradient_graph(self) -> ExplainGraph:
        """The explain graph in float32, opened at its first use: int8's rounding is larger than small derivatives."""
        if self.precision == "float32" and self.explain_graph:
            return self.explain_graph
        return ExplainGraph(self._explain_files, self.card, EXPLAIN)

    def warm(self) -> None:
        """On a GPU, run batches of several shapes: a shape's first run is slow, and a full batch must fit the memory.

        On the CPU a first run costs half a millisecond at most, and the checks of `__init__` have run each graph.
        Raises ProviderError where the memory does not hold a sentence.
        """
        if self.encoder.session.provider != CUDA:
            return
        for length in sorted({min(length, self.card.max_tokens) for length in WARM_UP_LENGTHS}):
            sentence = self.vocab.sentence(["a"] * length, np.arange(length))
            for size in (1, max(1, self.encoder.budget // self.encoder.costs([sentence])[0])):
                vectors = self._encode(sentence, size)
                if self._head:
                    run_now(self.logits(*[vectors] * len(HEAD_INPUTS[self.card.kind])))

    def _encode(self, sentence: Sentence, size: int) -> Floats:
        """Vectors of a batch of this size. If memory is missing, of a smaller batch, and the budget falls to that."""
        try:
            return np.array(self.encoder.run(self.encoder.prepare([sentence] * size)))
        except OutOfMemory as error:
            if size == 1:
                raise ProviderError(
                    f"bundle {self.card.name}: the device's memory does not hold a sentence of {len(sentence)} words: "
                    "serve fewer models, or with fewer processes"
                ) from error
            self.encoder.budget = size // 2 * self.encoder.costs([sentence])[0]
            return self._encode(sentence, size // 2)

    def check_golden(self) -> None:
        """Compare with the bundle's golden vectors, if it has any. Raises BundleError with the largest change."""
        try:
            moved = run_now(self.moved())
        except InferenceFailed as error:
            moved = [str(error)]
        if moved:
            more = f", and {len(moved) - 1} more" if len(moved) > 1 else ""
            reason = f"on this machine {moved[0]}{more}: {REMEDY}"
            raise BundleError(self.card.name, GOLDEN, reason)

    def moved(self, parser: Parser | None = None) -> Steps[list[str]]:
        """Encode the golden sentences, if there are any, by their tokens and trees; what has changed, in words.

        With `parser` parse them too. Raises InferenceFailed.
        """
        if self.golden is None:
            return []
        moved = []
        if parser:
            texts, card = self.golden.texts, self.card
            parses = yield from parse(parser, texts, card.max_tokens, card.tree)
            moved = self.golden.moved_trees(map(self.fit, parses), card)
        pairs = zip(self.golden.tokens, self.golden.heads, strict=True)
        sentences = [self.vocab.sentence(tokens, heads) for tokens, heads in pairs]
        work = Work(self.encoder, sentences)
        yield work
        vectors = np.array(work.outputs)
        logits = None
        if self._head:
            logits = yield from self.logits(*sides(self.card, vectors))
            logits *= np.float32(self.card.temperature)  # raw, as calibration does not change them
        current = outputs(self.card, vectors, logits)
        self.deviation = self.golden.deviation(current, self.precision)
        return [*moved, *self.golden.moved_outputs(current, self.precision)]

    def fit(self, parse: Parse) -> Parse:
        """The text, cut to the model's limit of word pieces."""
        if isinstance(self.vocab, WholeText):
            return self.vocab.fit(parse)
        return parse.first(self.vocab.fitting(parse.tokens))

    def sentences(self, parses: Iterable[Parse]) -> list[Sentence]:
        if isinstance(self.vocab, WholeText):
            return list(map(self.vocab.sentence_of, parses))
        return [self.vocab.sentence(parse.tokens, parse.heads) for parse in parses]

    def nearest(self, parses: Sequence[Parse]) -> Steps[dict[int, Sentence]]:
        """By row, the sentence of the premise that an NLI model reads alone as well. Empty for other models."""
        nearest: dict[int, Sentence] = {}
        if self.card.kind != "nli":
            return nearest
        for begin in range(0, len(parses), ROWS_AT_ONCE):
            if begin:
                yield None
            texts = nearest_sentences(parses[begin : begin + ROWS_AT_ONCE])
            rows = [begin // 2 + row for row in texts]
            nearest.update(zip(rows, self.sentences(texts.values()), strict=True))
        return nearest

    def answer(
        self, parses: Sequence[Parse], sides: Sequence[Floats], nearest: Mapping[int, Floats]
    ) -> Steps[Floats]:
        """The logits (N, C) of texts, or of pairs, whose two texts stand in turn in `parses` (2 N,).

        `sides` hold the vectors (N, D). Of an NLI model, `nearest` has those of the sentences that are read alone: the
        answer is the geometric mean. Where the pair's words tell a label (`text.natural_logic`), most of the
        probability goes to it.
        """
        logits = yield from self.logits(*sides)
        if self.card.kind != "nli":
            return logits
        if nearest:
            rows = list(nearest)
            alone = yield from self.logits(np.array(list(nearest.values())), sides[1][rows])
            logits[rows] = (log_softmax(logits[rows]) + log_softmax(alone)) / 2
        labels = self.card.labels
        for row, best in enumerate(logits.argmax(1).tolist()):
            if row and 2 * row % ROWS_AT_ONCE == 0:
                yield None
            premise, hypothesis = parses[2 * row : 2 * row + 2]
            told = labels.index(told_label(premise, hypothesis, labels[best]))
            if told != best:
                moved = logits[row, best]
                logits[row, told] = np.logaddexp(logits[row, told], moved + log(MOVED_SHARE))
                logits[row, best] = moved + log(1 - MOVED_SHARE)
        return logits

    def logits(self, *sides: Floats) -> Steps[Floats]:
        """The head's logits (N, C), divided by the card's temperature, for an array (N, D) per side.

        Raises InferenceFailed.
        """
        assert self._head is not None, "the model has a head"
        work = Work(self._head, list(zip(*sides, strict=True)))
        yield work
        logits: Floats = np.array(work.outputs)
        if not np.isfinite(logits).all():
            raise InferenceFailed("the model gave NaN or infinity")
        return logits / np.float32(self.card.temperature)


def _open(
    bundle: Bundle, file: str, device: Resolved, threads: int, shared: Mapping[str, OrtValue] = {}
) -> OrtSession:
    """A session of one of the bundle's graphs. Raises ProviderError on a GPU, else BundleError."""
    files = bundle.files
    try:
        return OrtSession(files[file], device, threads, shared, {ENCODER: files[ENCODER]})
    except GraphError as error:
        reason = f"ONNX Runtime cannot open a graph on device {device}: {error}"
        if device == "cuda":
            raise ProviderError(reason) from error
        raise BundleError(bundle.card.name, file, reason) from error
