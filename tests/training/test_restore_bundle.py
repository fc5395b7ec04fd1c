"""Each shipped bundle in torch: a run that begins with it has its vectors, and trains on."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch.nn import functional

from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import CARD, ENCODER, HEAD
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.text.batch import Batch, collate
from heedful.text.graph import open_session
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import tasks
from heedful.training.config import Paths, RunConfig, TeacherConfig
from heedful.training.errors import RunDamaged
from heedful.training.model import make_model
from heedful.training.objectives import make_objective
from heedful.training.restore_bundle import TOLERANCE, restore_bundle
from heedful.training.start import load_initial_weights
from tests.shipped import BUNDLES, SHIPPED
from tests.training.conftest import changed, train

UNLISTED = ("zyxomic", "Flurbs")


def configuration(card: Any, start: Path) -> RunConfig:
    """A run of the card's encoder that begins with `start`."""
    keywords = {**card.encoder.config}
    words = {"dim": keywords.pop("dim"), "subword_rows": card.composed}
    keywords.pop("max_tokens", None)
    fields: dict[str, Any] = {"task": card.task, "init_from": start, "licence": "none"}
    encoder = {"name": card.encoder.name, "config": keywords}
    if card.kind != "embedding":
        fields["head"] = restore_bundle(start).config.head.model_dump()
    return RunConfig.model_validate({**fields, "encoder": encoder, "words": words})


def sides(vocab: Vocab, texts: list[list[str]], kind: str) -> list[Batch]:
    heads = [np.maximum(np.arange(len(text)) - 1, 0) for text in texts]
    read_texts = [vocab.sentence(*one) for one in zip(texts, heads, strict=True)]
    if kind in ("nli", "relatedness"):
        return [collate(read_texts[:2]), collate(read_texts[2:])]
    return [collate(read_texts)]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_run_begins_with_the_vectors_of_a_bundle_and_trains_on(name: str, tmp_path: Path) -> None:
    bundle = read(BUNDLES / name)
    card, vocab = bundle.card, bundle.vocab
    assert isinstance(vocab, Vocab)
    known = vocab.words[len(SPECIAL) :][:300]
    lexicon = Vocab([*reversed(known), "aword-of-its-own"], card.composed)
    lexicon.save(tmp_path / "vocab.txt")
    config = configuration(card, BUNDLES / name)
    torch.manual_seed(0)
    model = make_model(
        config, card.kind, len(card.labels), torch.randn(len(lexicon), config.words.dim)
    ).eval()
    data = load_initial_weights(config, model, tasks.get(card.task), tmp_path / "vocab.txt")
    assert data == [one.model_dump() for one in card.training.data]
    texts = [list(known[at : at + 7]) for at in (0, 40, 120)] + [[known[3], *UNLISTED]]
    with torch.no_grad():
        batches = sides(lexicon, texts, card.kind)
        found = [model.encode(side).numpy() for side in batches]
        logits = model(batches).numpy()
    session = open_session(bundle.files[ENCODER])
    stored = [
        session.run(None, dict(encoder_feeds(card, side)))[0]
        for side in sides(vocab, texts, card.kind)
    ]
    compared = list(zip(found, stored, strict=True))
    if HEAD in bundle.files:
        fed = dict(zip(HEAD_INPUTS[card.kind], stored, strict=True))
        compared += [(logits, open_session(bundle.files[HEAD]).run(None, fed)[0])]
    for one, expected in compared:
        np.testing.assert_allclose(one, expected, atol=TOLERANCE * max(1, np.abs(expected).max()))

    optimiser = torch.optim.SGD(model.parameters(), lr=1e-2)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}

    def loss() -> torch.Tensor:
        outputs = model(batches)
        if not card.labels:
            return -functional.cosine_similarity(outputs, torch.ones_like(outputs)).mean()
        return functional.cross_entropy(outputs, torch.zeros(len(outputs), dtype=torch.long))

    first = loss()
    first.backward()
    optimiser.step()
    assert loss() < first
    moved = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    parts = {name.split(".")[1] for name in moved if name.startswith("sentence.")}
    assert parts >= {"embedding", "encoder"}


def test_a_run_with_a_closed_list_takes_the_table_alone(tmp_path: Path) -> None:
    folder = BUNDLES / "ms-san-sst2"
    card, vocab = read(folder).card, tmp_path / "vocab.txt"
    vocab.write_bytes((folder / "vocab.txt").read_bytes())
    closed = changed(configuration(card, folder), words={"subword_rows": 0})
    restored = restore_bundle(folder).model.trained_state_dict()
    expected = restored["sentence.embedding.table.weight"]
    model = make_model(closed, "classification", 2, torch.zeros_like(expected))
    load_initial_weights(closed, model, tasks.get("sst2"), vocab)
    assert torch.equal(model.sentence.embedding.get_parameter("weight"), expected)


def test_a_bundle_lends_its_words_and_teaches_the_run_that_goes_on_from_it(paths: Paths) -> None:
    folder = BUNDLES / "ms-san-sst2"
    examples = tasks.get("sst2").dev.read(paths.data)
    restored = restore_bundle(folder)
    assert isinstance(restored.lexicon, Vocab)
    texts = [sides(restored.lexicon, [one.texts[0].split()], "embedding") for one in examples]
    with torch.no_grad():
        expected = [restored.model(text).softmax(-1)[0] for text in texts]
    teacher = TeacherConfig(run=folder, weight=1.0)
    config = changed(configuration(read(folder).card, folder), epochs=1, teacher=teacher)
    where: dict[str, Any] = {"pipeline": paths.parser, "cache": paths.cache}
    goal = make_objective("classification", config, classes=2, **where)
    np.testing.assert_allclose(goal.targets(examples), np.stack(expected), atol=0.05)
    train(config, paths)
    assert (paths.run / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


def test_a_bundle_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(BUNDLES / "lama-r8", tmp_path / "lama-r8")
    model = onnx.load(folder / ENCODER)
    for one in model.graph.initializer:
        if one.name == "encoder.attention.hidden.bias":
            one.name = "unheard-of"
    onnx.save(model, folder / ENCODER)
    with pytest.raises(RunDamaged, match=r"it has no weight encoder\.attention\.hidden\.bias"):
        restore_bundle(folder)
    card = json.loads((folder / CARD).read_text())
    card["encoder"]["config"]["heads"] = 14
    (folder / CARD).write_text(json.dumps(card))
    with pytest.raises(RunDamaged, match="has the shape"):
        restore_bundle(folder)
