"""From a text file of trees to an answer: trained, exported and served, each for real, or nothing is written."""

import copy
import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import heedful
from heedful.cli import export, selftest
from heedful.export.bundle import TrainedModel, export_bundle, make_bundle
from heedful.export.dev_split import DevSplit, graph_vectors, torch_head, torch_vectors
from heedful.export.errors import ExportError
from heedful.export.measured import MIN_COSINE, measured
from heedful.export.run import Choices, export_run, read
from heedful.export.weight_storage import Storage, int8_rows, round_weights
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.answers import softmax
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import ENCODER_INT8, EXPLAIN_INT8, GOLDEN, ParserCard, ScoreCard
from heedful.text.batch import collate
from heedful.text.parse import Parser
from heedful.training import checkpoint, tasks
from heedful.training.config import Paths, RunConfig
from heedful.training.errors import DataMissing, RunMissing
from heedful.training.tasks.base import Example
from tests.asking import present
from tests.builders import BuiltParser
from tests.export.trained import DIM, ROWS, WORDS, trained
from tests.training.conftest import changed, train
from tests.transformer import tiny_folder
from tools.average import average
from tools.unpack import BASE_RUN, PACKED, SCALE, unpack

TEXTS = ["a movie is good", "a movie is dull", "an unheard movie is  lovely", "bad"]
SIZE = 12
TABLE = "embedding.transformer.embeddings.word_embeddings.weight"
CHANGES: dict[str, dict[str, Any]] = {
    "fine-tuned": {},
    "adapters": {"transformer": {"lora_rank": 2}},
    "frozen": {"freeze": ("transformer",)},
}
"""Of the configuration of a run over a transformer."""
Runs = Callable[[str], Path]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    pipeline: BuiltParser,
    data: Path,
    cache: Path,
    config: RunConfig,
) -> Runs:
    """The run over words or over a transformer, trained when it is first asked for; `tiny` lies beside it."""

    @functools.cache
    def trained_run(kind: str) -> Path:
        folder = tmp_path_factory.mktemp("runs")
        tiny = tiny_folder(folder / "tiny", SIZE)
        run = changed(config, max_tokens=30, alpha=0.25)
        if kind in CHANGES:
            over = {"name": str(tiny), "dim": SIZE, "rate": 1e-2}
            run = changed(run, epochs=2, encoder={"name": "ms-san-bert"}, transformer=over)
            run = changed(run, **CHANGES[kind])
        file = Path("configs/toy-sst2.toml")
        paths = Paths(folder / "run", data, str(pipeline.folder), cache, file)
        train(run, paths)
        return paths.run

    return trained_run


@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_not_trained_is_read_from_where_it_came_from(runs: Runs, kind: str) -> None:
    folder = runs(kind)
    assert not (folder / checkpoint.VOCAB).exists()
    found = read(folder)
    tiny = folder.parent / "tiny"
    stored, start = checkpoint.best(folder), load_file(tiny / "model.safetensors")
    assert (f"sentence.{TABLE}" in stored) is (kind == "fine-tuned")
    start_table = start["embeddings.word_embeddings.weight"]
    assert torch.equal(found.model.state_dict()[TABLE], start_table) is (kind != "fine-tuned")
    assert found.training.vectors == f"{tiny}, {'frozen' if kind == 'frozen' else 'fine-tuned'}"


@pytest.mark.parametrize(("kind", "storage"), [("words", "normal"), ("adapters", "small")])
def test_a_run_becomes_a_bundle_that_answers_as_the_trained_model(
    runs: Runs, tmp_path: Path, pipeline: BuiltParser, kind: str, storage: Storage
) -> None:
    start, small = read(runs(kind)), storage == "small"
    card = export_bundle(start, tmp_path / "ms-san-sst2", storage)
    assert (card.task, card.labels) == ("sst2", ("negative", "positive"))
    assert (card.max_tokens, card.alpha, card.licence) == (30, 0.25, "CC0-1.0")
    assert card.training.config == "configs/toy-sst2.toml"
    assert [(score.split, score.rows) for score in card.scores] == [("dev", 8)]
    assert ("int8, large tables int4" in card.parity.against) == small

    parses = Parser.load(pipeline.folder).parse(TEXTS, 30, tree=True)
    batch = collate([start.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    feeds = batch.feeds(("ids", "lengths", *start.model.inputs), 0.25)
    model, head = start.model.eval(), present(start.head).eval()
    round_weights(model, storage, linear=small)
    round_weights(head, storage)
    with torch.inference_mode():
        vectors = model(**{name: torch.as_tensor(value) for name, value in feeds.items()})
        expected = head(vectors).softmax(-1)
    with heedful.load(tmp_path / "ms-san-sst2", parser=str(pipeline.folder)) as loaded:
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), expected, atol=1e-4)


def test_a_run_in_8_bits_over_another_is_exported_without_the_dataset(
    runs: Runs, tmp_path: Path, pipeline: BuiltParser, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `adapters/` holds them: rows with scales, without the weights that are the same in the folder beside."""
    folder = runs("adapters")
    stored: dict[str, torch.Tensor] = {}
    for name, one in checkpoint.best(folder).items():
        if one.ndim == 2 and one.is_floating_point():
            stored[name], stored[name + SCALE] = int8_rows(one)
        else:
            stored[name] = one.half() if one.is_floating_point() else one
    first, second = (Path(shutil.copytree(folder, tmp_path / "adapters" / name)) for name in "ab")
    for adapter in (first, second):
        (adapter / checkpoint.BEST).unlink()
        (adapter / checkpoint.SCORES).write_text("[]")
    changed = next(name for name in stored if name.startswith("head.") and stored[name].ndim == 2)
    checkpoint.save(first / PACKED, stored)
    checkpoint.save(second / PACKED, {BASE_RUN: "a", changed: 2 * stored[changed]})
    record = json.loads((second / checkpoint.RECORD).read_text())
    (second / checkpoint.RECORD).write_text(json.dumps({**record, "temperature": 1.5}))

    first, second = (unpack(adapter, tmp_path / "runs") for adapter in (first, second))
    average(second, first, tmp_path / "mean")
    mean, *both = (checkpoint.best(each)[changed] for each in (tmp_path / "mean", first, second))
    torch.testing.assert_close(mean, sum(both) / 2)
    whole, small = read(folder), read(second)
    ids, pieces = torch.tensor([[2, 5, 6, 7, 3]]), torch.tensor([[1, 2]])
    arrays = (ids, torch.tensor([2]), torch.tensor([[1, 1]]), torch.tensor(0.25), pieces)
    with torch.inference_mode():
        expected, found = (each.model.eval()(*arrays) for each in (whole, small))
    assert 0 < (found - expected).abs().max() < 0.02 * expected.abs().max()
    made, none = tmp_path / "tiny-sst2", tmp_path / "none"
    export.command(second, made, "small", int8=False, data=none, parser=str(pipeline.folder))
    assert "not measured" in capsys.readouterr().err
    card = bundle.read(made).card
    assert (card.temperature, card.trained) == (1.5, None)
    alone = shutil.copytree(tmp_path / "adapters" / "b", tmp_path / "elsewhere" / "b")
    with pytest.raises(RunMissing, match=r"elsewhere/a holds no best\.pt"):
        unpack(alone, tmp_path / "runs")


@pytest.fixture(scope="module")
def exported(runs: Runs, pipeline: BuiltParser, data: Path) -> Path:
    """The bundle of the run over words, with rows that compose unlisted words."""
    run = runs("words")
    out = run.parent / "models" / "ms-san-sst2"
    export.command(run, out, composed=ROWS, data=data, parser=str(pipeline.folder))
    return out


def test_one_call_writes_all_of_it_and_it_passes_its_self_test(
    runs: Runs, exported: Path, pipeline: BuiltParser, data: Path
) -> None:
    """Of rows that the run answers rightly the likeliest temperature is the least that is allowed."""
    found = bundle.read(exported)
    card = found.card
    assert {ENCODER_INT8, EXPLAIN_INT8, GOLDEN} <= set(found.files)
    assert card.composed == ROWS
    assert card.training.settings == checkpoint.record(runs("words"))["config"]
    int8, trained = present(card.int8), present(card.trained)
    assert int8.products == 12
    assert MIN_COSINE < trained.cosine <= trained.cosine_float32 + 1e-4
    assert 0 < present(trained.answers) < 0.02
    (score,) = (one for one in card.scores if one.split == "dev")
    assert (score.metric, score.rows, score.value) == ("accuracy", 8, int8.int8)
    assert selftest.run([exported], str(pipeline.folder))[1] == {}

    start, task = read(runs("words")), tasks.get("sst2")
    dev = DevSplit.read(task, task.dev.read(data), Parser.load(pipeline.folder), start)
    logits = present(torch_head(start))(dev.sides(torch_vectors(start, dev.sentences)))
    right = softmax(logits)[np.arange(8), [int(one.label) for one in dev.examples]]
    assert (card.temperature < 1) == bool((right > 0.5).all())
    assert card.temperature != 1


def test_what_cannot_be_exported_writes_nothing(
    runs: Runs, exported: Path, pipeline: BuiltParser, data: Path, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in exported.iterdir()}
    other = shutil.copytree(pipeline.folder, tmp_path / "other")
    meta = json.loads((other / "meta.json").read_text())
    (other / "meta.json").write_text(json.dumps({**meta, "name": "other"}))
    loaded = Parser.load(pipeline.folder)

    def refused(how: Choices, data: Path = data, parser: Parser = loaded) -> None:
        export_run(runs("words"), exported, how, data=data, parser=parser, say=print)

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
