"""A component of a spaCy pipeline that sets heads and relations: one ONNX graph scores, the best tree wins.

It stands in the place of spaCy's transition parser, under the name `parser`. Its folder:

    scores.onnx     features (B, L, F) -> arc scores (B, L, 1 + L), dependents and governors (B, L, E)
    relations.onnx  dependents, governors, heads (B, L) -> relation of each word to its head (B, L)
    words.bin       (V,) little-endian uint64: spaCy's hashes of the words that the word table has, in its order
    config.json     names of the relations (a root's is spaCy's ROOT), and how words are hashed
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from heedful.text.arborescence import best_heads
from heedful.text.batch import plan
from heedful.text.word_features import WordFeatures, pad

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SCORES, RELATIONS, WORDS, CONFIG = "scores.onnx", "relations.onnx", "words.bin", "config.json"
CELLS = 4096
"""Tokens of one run of the graph, padding counted."""
LONGER = 1.4
"""How many times the shortest text of a run the longest may be."""
ROOT = "ROOT"

Device = Literal["cpu", "cuda"]


class HeadScorer:
    """Empty until `from_disk`: what it knows comes from its folder."""

    def __init__(self, vocab: Vocab, *, device: Device, threads: int) -> None:
        self._vocab, self._device, self._threads = vocab, device, threads
        self._files: dict[str, bytes] = {}
        self.labels: tuple[str, ...] = ()

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int) -> Iterator[Doc]:
        for docs in minibatch(stream, batch_size):
            self._annotate(docs)
            yield from docs

    def to_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002  # spaCy gives it
        path.mkdir(exist_ok=True)
        for name, content in self._files.items():
            (path / name).write_bytes(content)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> Self:  # noqa: ARG002
        """Raises OSError or ValueError, as spaCy's components do, for files that are not there or not these."""
        self._files = {
            name: (path / name).read_bytes() for name in (SCORES, RELATIONS, WORDS, CONFIG)
        }
        config = json.loads(self._files[CONFIG])
        self.labels = (*config["labels"], ROOT)
        self._label_hashes = np.array(
            [self._vocab.strings.add(label) for label in self.labels], np.uint64
        )
        self._words = WordFeatures(np.frombuffer(self._files[WORDS], "<u8"), config["tables"])
        self._scores, self._relations = (
            _session(self._files[name], self._device, self._threads) for name in (SCORES, RELATIONS)
        )
        return self

    def _annotate(self, docs: list[Doc]) -> None:
        """Set heads and relations; a document without a token has none."""
        docs = [doc for doc in docs if len(doc)]
        lengths = np.array([len(doc) for doc in docs])
        for group in alike(lengths.tolist()):
            self._annotate_group([docs[i] for i in group], lengths[group])

    def _annotate_group(self, docs: list[Doc], lengths: "np.ndarray[Any, Any]") -> None:
        scores, dependents, governors = self._scores.run(
            None, {"features": pad(self._words(docs), lengths)}
        )
        heads = best_heads(scores, lengths)  # (B, L), 0 is the root
        feeds = {"dependents": dependents, "governors": governors, "heads": heads}
        (relations,) = self._relations.run(None, feeds)
        relations = np.where(heads > 0, relations, len(self.labels) - 1)
        steps = np.where(heads > 0, heads - 1 - np.arange(heads.shape[1]), 0)  # to the governor
        values = np.stack([steps.astype(np.uint64), self._label_hashes[relations]], -1)
        for doc, length, rows in zip(docs, lengths, values, strict=True):
            doc.from_array([HEAD, DEP], rows[:length])


def alike(lengths: Sequence[int]) -> list[list[int]]:
    """Indices in groups of at most `CELLS` once padded, none of whose texts is much longer than another.

    Padding costs what words cost, and a group costs a run of the graphs, which is a few words' time.
    """
    groups: list[list[int]] = []
    for part in plan(lengths, CELLS):
        shortest = 0
        for index in part:  # sorted by length
            if index == part[0] or lengths[index] > shortest * LONGER + 1:
                groups.append([])
                shortest = lengths[index]
            groups[-1].append(index)
    return groups


@Language.factory("head_scorer", default_config={"device": "cpu", "threads": 1})
def make_head_scorer(nlp: Language, name: str, device: Device, threads: int) -> HeadScorer:  # noqa: ARG001
    """`device` "cuda" takes a GPU; `threads` is what one operator may use on the CPU."""
    return HeadScorer(nlp.vocab, device=device, threads=threads)


def _session(graph: bytes, device: Device, threads: int) -> "InferenceSession":
    import onnxruntime  # 60 MB, which a pipeline without this component does not need

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # a pattern is kept for every shape met
    options.log_severity_level = 4
    wanted = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[device]
    try:
        session = onnxruntime.InferenceSession(
            graph, options, providers=list(dict.fromkeys([wanted, "CPUExecutionProvider"]))
        )
    except Exception as error:  # ONNX Runtime's errors have no narrower common class
        raise ValueError("the head scorer's graph cannot be opened") from error
    if session.get_providers()[0] != wanted:
        raise ValueError("the head scorer's device is cuda, and CUDA did not come up")
    return session
