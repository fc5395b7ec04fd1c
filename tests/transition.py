"""A transition parser of the shape of training/parser.cfg, small and not trained."""

from pathlib import Path

import numpy as np
import spacy
from spacy.training import Example
from spacy.util import load_config
from spacy.vectors import Vectors
from thinc.api import fix_random_seed

from heedful.training.parser import CONFIG
from tests.head_scorer import KNOWN


def build_transition_parser(folder: Path) -> Path:
    """Width 24, two windows, static vectors of a few words."""
    fix_random_seed(0)
    overrides = {
        "components.tok2vec.model.encode.width": 24,
        "components.tok2vec.model.encode.depth": 2,
        "components.tok2vec.model.embed.rows": [50, 20, 30, 20],
        "components.parser.min_action_freq": 1,
    }
    nlp = spacy.util.load_model_from_config(load_config(CONFIG, overrides), auto_fill=True)
    words = [word.lower() for word in KNOWN]
    for word in words:
        nlp.vocab.strings.add(word)
    vectors = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
    nlp.vocab.vectors = Vectors(data=vectors, keys=words, strings=nlp.vocab.strings)
    doc = nlp.make_doc("Two kids wash their hands")
    deps = ["nummod", "nsubj", "ROOT", "nmod:poss", "obj"]
    example = Example.from_dict(doc, {"heads": [1, 2, 2, 4, 2], "deps": deps})
    nlp.config["initialize"]["vectors"] = None
    nlp.initialize(lambda: [example])
    nlp.to_disk(folder)
    return folder
