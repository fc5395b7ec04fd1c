"""The upper limit of a process: parser and session in a bare loop.

    python -m benchmarks.bare BUNDLES MODEL COST

A batch costs at most COST tokens once padded; sentences of similar lengths go together. As in `heedful serve`, numpy
uses one thread and the loaded model is not garbage-collected.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy

import sys
from pathlib import Path

import numpy as np

from benchmarks.answering import answer
from heedful.runtime.bundles.bundle import read
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OVERHEAD
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.memory import freeze_gc
from heedful.text.batch import cheapest, collate
from heedful.text.parse import Parser


def run(bundles: Path, model: str, cost: int) -> None:
    bundle = read(bundles / model)
    card, vocab = bundle.card, bundle.vocab
    parser = Parser.load(bundles / "parser")
    session = LoadedModel(bundle, "cpu", 1).encoder.session  # the graph that the service runs

    def compute(texts: list[str]) -> None:
        parses = parser.parse(texts, card.max_tokens, card.tree)
        sentences = [vocab.sentence(parse.tokens, parse.heads) for parse in parses]
        for batch in cheapest([len(sentence) for sentence in sentences], cost, OVERHEAD):
            vectors = session.run(encoder_feeds(card, collate([sentences[i] for i in batch])))
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    freeze_gc()
    answer(compute)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
