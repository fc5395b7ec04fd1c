"""A trained head scorer -> a spaCy pipeline that holds no torch: rounded, exported, compared with torch."""

import copy
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
import spacy
import torch
from spacy.language import Language
from torch import Tensor, nn

from heedful.export.errors import ParityError
from heedful.export.onnx import graph
from heedful.export.quantize import round_weights
from heedful.models.head_scorer import HeadScorer
from heedful.text.head_scorer import CONFIG, RELATIONS, SCORES, WORDS
from heedful.text.word_features import FEATURES, PAD, ROWS, SPECIAL, WordFeatures
from heedful.training.head_scorer import Trained

TOLERANCE = 1e-3
"""Of scores, whose size is about ten."""


def pipeline(trained: Trained) -> Language:
    """Tokenizer and head scorer, ready to be used or written. Raises ParityError."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files(trained).items():
            (Path(folder) / name).write_bytes(content)
        nlp = spacy.blank("en")
        nlp.add_pipe("head_scorer", name="parser").from_disk(Path(folder))  # type: ignore[attr-defined]
    return nlp


def files(trained: Trained) -> dict[str, bytes]:
    """What stands in the component's folder (text.head_scorer). Raises ParityError."""
    model = copy.deepcopy(trained.model).cpu().float().eval()
    round_weights(model)
    B, L = 3, 5  # any but 0 and 1, which the exporter would take for constants
    features = torch.ones(B, L, FEATURES, dtype=torch.long)
    words = {"dependents": torch.ones(B, L, model.relation_dependent.out_features)}
    words["governors"] = 2 * words["dependents"]
    axes = {0: "B", 1: "L"}
    graphs = {
        SCORES: graph(
            model, {"features": features}, {"features": axes}, ["scores", "dependents", "governors"]
        ),
        RELATIONS: graph(
            _Relations(model),
            {**words, "heads": torch.ones(B, L, dtype=torch.long)},
            dict.fromkeys(("dependents", "governors", "heads"), axes),
            ["relations"],
        ),
    }
    _check(graphs, model, trained.words)
    config = {"labels": trained.labels, "tables": trained.words.tables}
    return {
        **graphs,
        WORDS: trained.words.hashes.astype("<u8").tobytes(),
        CONFIG: json.dumps(config, indent=1).encode(),
    }


class _Relations(nn.Module):
    """The best relation of each word to its governor; `heads` counts from 1, and 0, the root, is any."""

    def __init__(self, model: HeadScorer) -> None:
        super().__init__()
        self.model = model

    def forward(self, dependents: Tensor, governors: Tensor, heads: Tensor) -> Tensor:
        return self.model.relations(dependents, governors, (heads - 1).clamp(min=0)).argmax(-1)


def _check(graphs: Mapping[str, bytes], model: HeadScorer, words: WordFeatures) -> None:
    """Compare with torch over texts of any words and of many lengths."""
    rng = np.random.default_rng(1)
    scores, relations = (
        onnxruntime.InferenceSession(graphs[name], providers=["CPUExecutionProvider"])
        for name in (SCORES, RELATIONS)
    )
    for lengths in ([1], [1, 2, 3], [256], [3, 40, 1, 17], [*range(1, 33)]):
        sizes = [SPECIAL + len(words.hashes)]
        sizes += [count for count, _ in words.tables for _ in range(ROWS)]
        features = np.stack([rng.integers(1, n, (len(lengths), max(lengths))) for n in sizes], -1)
        features[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = PAD
        found = scores.run(None, {"features": features})
        with torch.inference_mode():
            expected = model(torch.from_numpy(features))
        for name, one, other in zip(("scores", "dependents"), found, expected, strict=False):
            if (error := np.abs(one - other.numpy()).max()) > TOLERANCE:
                raise ParityError(f"the head scorer's {name} are {error:.1e} away from torch")
        heads = expected[0].argmax(-1).numpy()
        feeds = {"dependents": found[1], "governors": found[2], "heads": heads}
        (names,) = relations.run(None, feeds)
        with torch.inference_mode():
            best = _Relations(model)(*expected[1:], torch.from_numpy(heads)).numpy()
        if (names == best).mean() < 0.999:  # a near tie may fall either way
            raise ParityError("the head scorer's relations are not those of torch")
