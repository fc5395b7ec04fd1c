"""`heedful export`: a run becomes a whole bundle in one call, or nothing is written."""

import copy
import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.cli import export, selftest
from heedful.export.bundle import TrainedModel, make_bundle
from heedful.export.dev_split import DevSplit, graph_vectors, torch_head, torch_vectors
from heedful.export.errors import ExportError
from heedful.export.measured import MIN_COSINE, measured
from heedful.export.run import Choices, export_run, read
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.answers import softmax
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import ENCODER_INT8, EXPLAIN_INT8, GOLDEN, ParserCard, ScoreCard
from heedful.text.parse import Parser
from heedful.training import checkpoint, tasks
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import Example
from tests.asking import present
from tests.builders import BuiltParser
from tests.export.test_run import train
from tests.export.trained import DIM, WORDS, trained

ROWS = 2048


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Path:
    """A run on six sentences; its folder's parent is the data folder."""
    return train(tmp_path_factory.mktemp("data"), pipeline.folder)


@pytest.fixture(scope="module")
def exported(run: Path, pipeline: BuiltParser) -> Path:
    """Its bundle, with rows that compose unlisted words."""
    out = run.parent / "models" / "ms-san-sst2"
    export.command(run, out, composed=ROWS, data=run.parent, parser=str(pipeline.folder))
    return out


def test_one_call_writes_all_of_it_and_it_passes_its_self_test(
    run: Path, exported: Path, pipeline: BuiltParser
) -> None:
    """Of 6 rows that the run answers rightly the likeliest temperature is the least that is allowed."""
    found = bundle.read(exported)
    card = found.card
    assert {ENCODER_INT8, EXPLAIN_INT8, GOLDEN} <= set(found.files)
    assert card.composed == ROWS
    assert card.training.settings == checkpoint.record(run)["config"]
    int8, trained = present(card.int8), present(card.trained)
    assert int8.products == 12
    assert MIN_COSINE < trained.cosine <= trained.cosine_float32 + 1e-4
    assert 0 < present(trained.answers) < 0.02
    (score,) = (one for one in card.scores if one.split == "dev")
    assert (score.metric, score.rows, score.value) == ("accuracy", 6, int8.int8)
    assert selftest.run([exported], str(pipeline.folder)).moved == {}

    start, task = read(run), tasks.get("sst2")
    dev = DevSplit.read(task, task.dev.read(run.parent), Parser.load(pipeline.folder), start)
    logits = present(torch_head(start))(dev.sides(torch_vectors(start, dev.sentences)))
    right = softmax(logits)[np.arange(6), [int(one.label) for one in dev.examples]]
    assert (card.temperature < 1) == bool((right > 0.5).all())
    assert card.temperature != 1


def test_what_cannot_be_exported_writes_nothing(
    run: Path, exported: Path, pipeline: BuiltParser, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in exported.iterdir()}
    other = shutil.copytree(pipeline.folder, tmp_path / "other")
    meta = json.loads((other / "meta.json").read_text())
    (other / "meta.json").write_text(json.dumps({**meta, "name": "other"}))
    loaded = Parser.load(pipeline.folder)

    def refused(how: Choices, data: Path = run.parent, parser: Parser = loaded) -> None:
        export_run(run, exported, how, data=data, parser=parser, say=print)

    with pytest.raises(DataMissing):
        refused(Choices(), data=tmp_path)
    with pytest.raises(ExportError, match="was trained with the parser en_tiny: name it with"):
        refused(Choices(), parser=Parser.load(other))
    with pytest.raises(ExportError, match="--words needs a run that composes unlisted words"):
        refused(Choices(words=3))
    assert {file.name: file.read_bytes() for file in exported.iterdir()} == before


@pytest.fixture(scope="module")
def embedding(pipeline: BuiltParser) -> TrainedModel:
    """Random weights, with the projection that an embedding has."""
    start = trained("embedding")
    torch.manual_seed(1)
    model = SentenceEncoder(start.model.embedding, start.model.encoder, nn.Linear(2 * DIM, DIM))
    card = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    return replace(start, model=model, task="embed", parser=card)


@pytest.fixture(scope="module")
def pairs(embedding: TrainedModel, pipeline: BuiltParser) -> DevSplit:
    rng = np.random.default_rng(2)
    texts = [" ".join(f"word{i}" for i in rng.integers(0, WORDS - 2, 8)) for _ in range(40)]
    examples = [Example((a, b), float(i)) for i, (a, b) in enumerate(pairwise(texts))]
    return DevSplit.read(tasks.get("embed"), examples, Parser.load(pipeline.folder), embedding)


def test_an_embedding_that_moves_too_far_from_the_trained_one_is_refused(
    embedding: TrainedModel, pairs: DevSplit
) -> None:
    good = measured(make_bundle(embedding, "ms-san-toy"), embedding, pairs)
    assert good.card.trained is not None
    assert MIN_COSINE <= good.card.trained.cosine < 1
    assert graph_vectors(good, "encoder.onnx", pairs.sentences).shape == (40, DIM)
    higher = ScoreCard(dataset="stsb", split="dev", metric="spearman", value=2, rows=1)
    with pytest.raises(ExportError, match=r"its spearman on stsb dev falls from 2\.0000"):
        measured(good, replace(embedding, scores=(higher,)), pairs)
    # The trained one is another: as far away as a graph of wrong weights.
    moved = copy.deepcopy(embedding)
    assert moved.model.projection is not None
    with torch.no_grad():
        moved.model.projection.bias.sub_(0.1)
    with pytest.raises(ExportError, match=r"lowest cosine of a vector to the trained model's is"):
        measured(good, moved, pairs)
