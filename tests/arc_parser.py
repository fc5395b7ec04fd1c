"""An arc parser of random weights in a pipeline: its trees are trees, no more."""

from pathlib import Path

import numpy as np
import torch

from tools.parser import pipeline as export
from tools.parser.corpus import COLUMNS, Corpus
from tools.parser.model import ArcParser
from tools.parser.soft_trees import CANDIDATES
from tools.parser.training import Trained, blank

LABELS = ("ROOT", "det", "nsubj", "obj")
TEXTS = (
    "Two kids wash their hands.",
    "The dog",
    "Wash",
    "Their unheard-of hands aren't good, and the dog is 12-04 years old (or so they say)!!",
)


def build_arc_parser(folder: Path) -> Path:
    """A pipeline in `folder`."""
    torch.manual_seed(2)
    model = ArcParser(
        tables=(60, 20, 30, 20),
        relations=len(LABELS),
        width=16,
        embedding=8,
        arc=8,
        rotary=4,
        relation=8,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    nlp = blank()
    nlp.meta["name"] = "tiny_arcs"
    words = [nlp.make_doc(text).to_array(COLUMNS) for text in TEXTS]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in words])])
    none = np.zeros((starts[-1], CANDIDATES), np.uint8)
    corpus = Corpus(starts, np.concatenate(words), none.astype(np.int16), none, none, none)
    trained = Trained(model.eval(), LABELS, nlp)
    export.pipeline(trained, corpus, agreeing=0.9).to_disk(folder)
    return folder
