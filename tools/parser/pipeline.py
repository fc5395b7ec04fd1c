"""A trained arc parser -> a spaCy pipeline without torch: weights in bytes, compared with torch."""

import copy
import json
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from spacy.language import Language

import heedful.text.arc_parser  # noqa: F401  # the component's name
from heedful.export.errors import ParityError
from heedful.export.int8 import int8_columns
from heedful.text.arc_parser import CONFIG, GRAPH, ROOT, WORDS, position_feeds
from heedful.text.arrays import Bytes, Doubles
from heedful.text.graph import open_session
from heedful.text.hashed_words import ZERO, WordVectors
from tools.parser.corpus import Corpus, Reader, single
from tools.parser.graph import OUTPUTS, arc_graph
from tools.parser.model import FAR, SLOWEST, ArcParser
from tools.parser.training import Trained

TOLERANCE = 1e-3
"""Largest difference of scores, whose size is about ten, between torch and the float graph."""
AGREEING = 0.97
"""Least share of governors that must be the same in bytes as in floats."""
CHECKED = 20
"""Batches of the sample to compare."""


def pipeline(trained: Trained, sample: Corpus, *, agreeing: float = AGREEING) -> Language:
    """The pipeline of tokenizer and parser.

    The steps of the bytes are measured on `sample`. Raises ParityError where they change more than
    1 - `agreeing` of its governors.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files(
            trained.model, trained.labels, sample, agreeing=agreeing
        ).items():
            (Path(folder) / name).write_bytes(content)
        nlp = trained.nlp
        component: Any = nlp.add_pipe("arc_parser", name="parser")  # spaCy calls it a function
        component.from_disk(Path(folder))
    return nlp


def files(
    model: ArcParser, labels: Sequence[str], sample: Corpus, *, agreeing: float = AGREEING
) -> dict[str, bytes]:
    """The files of the component's folder (text.arc_parser). Raises ParityError."""
    model = copy.deepcopy(model).float().eval()
    with torch.no_grad():
        model.relation_out.bias[labels.index(ROOT)] = FAR  # roots are found by arcs alone
    steps = measured(model, sample)
    graph = arc_graph(model, steps["window0"], steps)
    floats = arc_graph(model, steps["window0"], None)
    if (share := check(model, floats, graph, steps["window0"], sample)) < agreeing:
        raise ParityError(f"in bytes only {share:.3f} of the governors are those of floats")
    arrays = words(model, steps["window0"])
    content = BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # numpy types its keywords as flags
    settings = {"labels": list(labels), "speeds": speeds(model.rotary).tolist()}
    config = json.dumps(settings, indent=1).encode()
    return {GRAPH: graph, WORDS: content.getvalue(), CONFIG: config}


def words(model: ArcParser, step: float) -> dict[str, npt.NDArray[np.generic]]:
    """The tables of the word vectors (text.hashed_words), and the last layer of the relations."""
    weights = {name: value.detach().float().numpy() for name, value in model.state_dict().items()}
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for i in range(len(model.words.tables)):
        columns, scales = int8_columns(weights[f"words.tables.{i}.weight"].T, largest=127)
        arrays[f"table{i}"], arrays[f"table{i}_scales"] = np.ascontiguousarray(columns.T), scales
    arrays["mix"], arrays["mix_scales"] = int8_columns(weights["words.mix.weight"].T, largest=127)
    arrays["bias"] = weights["words.mix.bias"]
    arrays["gain"], arrays["shift"] = weights["words.norm.weight"], weights["words.norm.bias"]
    arrays["step"] = np.array(step)
    arrays["relation_matrix"] = weights["relation_out.weight"].T
    arrays["relation_bias"] = weights["relation_out.bias"]
    return arrays


def measured(model: ArcParser, sample: Corpus) -> dict[str, float]:
    """The byte step of each rounded value: its largest magnitude over `sample`, by 127 or 255."""
    largest: dict[str, float] = {}

    def note(name: str, values: torch.Tensor) -> None:
        largest[name] = max(largest.get(name, 0.0), float(values.abs().max()))

    hooks = [
        window.register_forward_pre_hook(
            lambda _, inputs, name=f"window{i}": note(name, inputs[0] * inputs[1][..., None])
        )
        for i, window in enumerate(model.windows)
    ]
    hooks.append(
        model.root.register_forward_pre_hook(lambda _, inputs: note("words_read", inputs[0]))
    )
    hooks.append(
        model.relation_out.register_forward_pre_hook(
            lambda _, inputs: note("pairs_read", inputs[0])
        )
    )
    reader = Reader(sample, [len(table) for table in model.words.tables.parameters()])
    for texts in single(sample):
        batch = reader.batch(texts)
        with torch.inference_mode():
            scores, dependents, governors = model(batch.rows, batch.places)
            model.relations(dependents, governors, (scores.argmax(-1) - 1).clamp(min=0))
    for hook in hooks:
        hook.remove()
    return {name: value / (255 if name == "pairs_read" else 127) for name, value in largest.items()}


def check(model: ArcParser, floats: bytes, graph: bytes, step: float, sample: Corpus) -> float:
    """Compare the graph of floats with torch; returns the share of governors that are the same in bytes.

    Raises ParityError.
    """
    sessions = [open_session(content) for content in (floats, graph)]
    vectors = WordVectors(words(model, step))
    agreeing = known = 0
    for texts in single(sample)[:CHECKED]:
        rows = [sample.words[slice(*sample.starts[i : i + 2]), 2:] for (i,) in texts]
        inputs = feeds([vectors(text) for text in rows], model.rotary)
        exact, rounded = (session.run(list(OUTPUTS), inputs) for session in sessions)
        inside = inputs["inside"][..., 0]
        x = (torch.from_numpy(inputs["words"]).float() - ZERO) * float(np.float32(step))
        with torch.inference_mode():
            expected = model.read(x, torch.from_numpy(inside))
        for output, reference in zip(exact[2:], expected, strict=True):
            scores, torch_scores = output[inside], reference.numpy()[inside]
            if (error := np.abs(scores - torch_scores)[scores > FAR / 2].max()) > TOLERANCE:
                raise ParityError(f"the arc parser's graph is {error:.1e} away from torch")
        agreeing += int((exact[0] == rounded[0])[inside].sum())
        known += int(inside.sum())
    return agreeing / known


def feeds(vectors: Sequence[Bytes], rotary: int) -> dict[str, npt.NDArray[Any]]:
    """The graph's inputs for texts of these word vectors, (L, D) each."""
    lengths = np.array([len(text) for text in vectors])
    longest = int(lengths.max())
    inside = np.arange(longest) < lengths[:, None]
    padded = np.full((*inside.shape, vectors[0].shape[1]), ZERO, np.uint8)
    padded[inside] = np.concatenate(vectors)
    return {
        "words": padded,
        "inside": inside[..., None],
        "outside": np.where(inside, np.float32(0), np.float32(FAR))[:, None],
        **position_feeds(longest, speeds(rotary)),
        "first": np.arange(len(lengths))[:, None] * longest,
    }


def speeds(rotary: int) -> Doubles:
    """The rotary frequencies, in radians a word."""
    pairs = rotary // 2
    frequencies: Doubles = SLOWEST ** -(np.arange(pairs) / (pairs - 1))
    return frequencies
