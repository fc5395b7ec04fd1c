"""A linear head on a frozen encoder: a bundle that the service reads, with numpy's answers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export.errors import ParityError
from heedful.export.linear_head import LinearHead, Provenance, head_graph, write_bundle
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import TYPICAL, DataCard, TrustCard, TypicalCard
from heedful.runtime.errors import BundleError
from heedful.runtime.service import Options, running
from heedful.text.graph import open_session
from tests.asking import classify, embed
from tests.builders import DIMENSION, build_bundle, build_models

MADE = Provenance(
    task="mood",
    data=DataCard(name="moods.csv", rows=3, licence="not stated", note="made up"),
    command="none",
    seed=1,
)
RNG = np.random.default_rng(0)
HEAD = LinearHead(
    RNG.normal(size=(3, DIMENSION)), RNG.normal(size=3), ("sad", "calm", "glad"), normalize=True
)
TYPICAL_CARD = TypicalCard(dataset="toy", sentences=10, centroids=1, threshold=0.3)
TRUST = TrustCard(
    dataset="toy",
    metric="accuracy",
    rows=4,
    value=0.5,
    controls=(),
    sentences=4,
    attention=0.5,
    evidence=0.5,
    random=0.5,
    wins=0.5,
    correlation=None,
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    build_models(folder)
    return folder


@pytest.mark.parametrize("normalize", [True, False])
def test_the_graph_is_numpys(normalize: bool) -> None:
    head = LinearHead(HEAD.coefficients, HEAD.intercepts, HEAD.labels, normalize)
    session = open_session(head_graph(head, DIMENSION))
    vectors = RNG.normal(size=(5, DIMENSION)).astype(np.float32) * 10
    vectors[2] = 0
    (found,) = session.run(None, {"sentence": vectors})
    np.testing.assert_allclose(found, head.logits(vectors), atol=1e-4)
    np.testing.assert_allclose(found[2], head.intercepts, atol=1e-6)


def test_a_binary_head_gives_the_sigmoid() -> None:
    row = RNG.normal(size=DIMENSION)
    head = LinearHead.binary(row, 0.5, ("no", "yes"), normalize=False)
    vectors = RNG.normal(size=(4, DIMENSION)).astype(np.float32)
    expected = 1 / (1 + np.exp(-(vectors @ row + 0.5)))
    np.testing.assert_allclose(softmax(head.logits(vectors))[:, 1], expected)


def test_the_service_serves_it_over_any_base(tmp_path: Path) -> None:
    """Embeddings, classifiers and pairs' models; int8 and explain graphs come along, the temperature does not."""
    parser = build_models(tmp_path)
    build_bundle(
        tmp_path, parser, name="tiny-int8", kind="nli", explain=True, int8=True, temperature=3.0
    )
    bases = ("tiny-flat", "tiny-sst2", "tiny-int8")
    for base in bases:
        bundle = read(tmp_path / base)
        card = write_bundle(bundle, HEAD, MADE, tmp_path / f"mood-{base}")
        assert (card.labels, card.kind, card.task) == (HEAD.labels, "classification", "mood")
        assert set(card.files) == {*bundle.card.files, "head.onnx"}
        assert card.training.vectors.endswith(f"{base} {bundle.card.version}")
        assert [data.name for data in card.training.data] == ["toy", "moods.csv"]

    async def ask() -> None:
        texts = ["two kids wash", "the dog is bad"]
        async with running(Options(tmp_path, threads=1)) as service:
            for base in bases:
                vectors = await embed(service, texts, model=base)
                found = await classify(service, texts, model=f"mood-{base}")
                np.testing.assert_allclose(
                    found.value, softmax(HEAD.logits(vectors.value)), atol=1e-5
                )

    asyncio.run(ask())


def test_what_was_measured_of_the_base_is_not_said_of_the_new_bundle(
    models: Path, tmp_path: Path
) -> None:
    base = read(models / "tiny-sst2")
    measured = base.card.model_copy(update={"typical": TYPICAL_CARD, "trust": TRUST})
    base = replace(base, card=measured, files={**base.files, TYPICAL: b"an index"})
    card = write_bundle(base, HEAD, MADE, tmp_path / "mood")
    assert (card.typical, card.trust) == (None, None)


def test_a_head_that_cannot_be_written_leaves_no_folder(models: Path, tmp_path: Path) -> None:
    base = read(models / "tiny-flat")
    broken = LinearHead(HEAD.coefficients * np.nan, HEAD.intercepts, HEAD.labels)
    with pytest.raises(ParityError, match="away from numpy"):
        write_bundle(base, broken, MADE, tmp_path / "mood")
    twice = LinearHead(HEAD.coefficients, HEAD.intercepts, ("sad", "sad", "glad"))
    with pytest.raises(BundleError, match="all different"):
        write_bundle(base, twice, MADE, tmp_path / "mood")
    assert not (tmp_path / "mood").exists()
