"""/classify with labels of the client's, against the cosines of /similarity and the entailment of /nli."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.runtime.zero_shot import COSINE_WEIGHT, NONE_COSINE, NONE_ENTAILMENT, TEMPLATES
from tests.app.conftest import Serve
from tests.app.test_answers import TEXTS
from tests.app.test_errors import check
from tests.app.test_tei import post

pytestmark = pytest.mark.anyio

LABELS = ["kids", "bad dog", "hands"]


async def cosines(client: httpx.AsyncClient, text: str, sentences: list[str]) -> Any:
    inputs = {"source_sentence": text, "sentences": sentences}
    return np.array(await post(client, "/similarity", inputs=inputs, model="tiny-flat"))


async def entailment(client: httpx.AsyncClient, text: str, sentences: list[str]) -> Any:
    pairs = [{"premise": text, "hypothesis": sentence} for sentence in sentences]
    answer = await post(client, "/nli", pairs=pairs, model="tiny-nli")
    return np.array([one["scores"]["entailment"] for one in answer["results"]])


async def expected(
    client: httpx.AsyncClient, text: str, kinds: str, templates: Sequence[str] = TEMPLATES
) -> tuple[Any, float]:
    """Odds (3,) of the labels, and of none of them, computed from what other routes answer.

    The cosine is the mean over the templates, entailment is of the first.
    """
    sides = [[template.replace("{}", label) for label in LABELS] for template in templates]
    odds, none = np.ones(len(LABELS)), 1.0
    if "cosine" in kinds:
        means = np.mean([await cosines(client, text, sentences) for sentences in sides], axis=0)
        odds *= np.exp(COSINE_WEIGHT * means)
        none *= np.exp(COSINE_WEIGHT * NONE_COSINE)
    if "entailment" in kinds:
        odds *= await entailment(client, text, sides[0])
        none *= NONE_ENTAILMENT
    return odds, none


def scores(row: list[dict[str, Any]]) -> list[float]:
    """In the order of LABELS; a row has its best label first."""
    assert [one["score"] for one in row] == sorted((one["score"] for one in row), reverse=True)
    found = {one["label"]: one["score"] for one in row}
    return [found[label] for label in LABELS]


@pytest.mark.parametrize(
    ("kinds", "model"),
    [("cosine and entailment", None), ("cosine", "tiny-flat"), ("entailment", "tiny-nli")],
)
async def test_scores_come_from_cosine_and_entailment(
    client: httpx.AsyncClient, kinds: str, model: str | None
) -> None:
    one = await post(client, "/classify", inputs=TEXTS, labels=LABELS, model=model)
    many = await post(
        client, "/classify", inputs=TEXTS, labels=LABELS, model=model, multi_label=True
    )
    for text, row, several in zip(TEXTS, one, many, strict=True):
        odds, none = await expected(client, text, kinds)
        np.testing.assert_allclose(scores(row["labels"]), odds / odds.sum(), rtol=1e-3)
        np.testing.assert_allclose(row["none"], none / (odds.sum() + none), rtol=1e-3)
        np.testing.assert_allclose(scores(several["labels"]), odds / (odds + none), rtol=1e-3)
        assert several["none"] == pytest.approx(row["none"])


async def test_a_template_makes_the_labels_sentences(client: httpx.AsyncClient) -> None:
    template = "the man is not {}"
    row = await post(
        client, "/classify", inputs=TEXTS[0], labels=LABELS, hypothesis_template=template
    )
    odds, _ = await expected(client, TEXTS[0], "cosine and entailment", [template])
    np.testing.assert_allclose(scores(row["labels"]), odds / odds.sum(), rtol=1e-3)


async def test_a_single_label_is_compared_with_none(client: httpx.AsyncClient) -> None:
    row = await post(client, "/classify", inputs=TEXTS[0], labels=["kids"])
    assert row["labels"][0]["score"] == pytest.approx(1 - row["none"])


@pytest.mark.parametrize("path", ["/classify", "/"])
async def test_the_hubs_shape_gets_labels_alone(client: httpx.AsyncClient, path: str) -> None:
    """As InferenceClient.zero_shot_classification sends and reads it."""
    ours = await post(client, "/classify", inputs=TEXTS, labels=LABELS, multi_label=True)
    parameters = {"candidate_labels": LABELS, "multi_label": True, "hypothesis_template": None}
    hub = await post(client, path, inputs=TEXTS[0], parameters=parameters)
    assert scores(hub) == pytest.approx(scores(ours[0]["labels"]))
    rows = await post(client, path, inputs=TEXTS, parameters=parameters)
    for row, own in zip(rows, ours, strict=True):
        assert scores(row) == pytest.approx(scores(own["labels"]))


async def test_top_k_and_trust(client: httpx.AsyncClient) -> None:
    whole = await post(client, "/classify", inputs=TEXTS[0], labels=LABELS)
    row = await post(client, "/classify", inputs=TEXTS[0], labels=LABELS, top_k=2, trust=True)
    assert row["labels"] == whole["labels"][:2]
    assert row["trust"]["confidence"] == pytest.approx(row["labels"][0]["score"])


async def test_an_answer_does_not_depend_on_other_texts_or_the_labels_order(
    client: httpx.AsyncClient,
) -> None:
    many = [TEXTS[i % len(TEXTS)] for i in np.random.default_rng(0).permutation(60)]
    rows = await post(client, "/classify", inputs=many, labels=LABELS[::-1])
    alone = {text: await post(client, "/classify", inputs=text, labels=LABELS) for text in TEXTS}
    for text, row in zip(many, rows, strict=True):
        np.testing.assert_allclose(scores(row["labels"]), scores(alone[text]["labels"]), atol=1e-4)


async def test_a_hundred_labels_at_most(client: httpx.AsyncClient) -> None:
    """Whatever the limit of inputs, which is 64 here."""
    labels = [f"kids {i}" for i in range(101)]
    row = await post(client, "/classify", inputs="kids", labels=labels[:100])
    assert len(row["labels"]) == 100
    answer = await client.post("/classify", json={"inputs": "kids", "labels": labels})
    assert "at most 100" in check(answer, 422, "invalid_value", "labels")["message"]


async def test_one_kind_of_model_is_enough_and_neither_is_refused_with_the_remedy(
    serve: Serve, models: Path, tmp_path: Path
) -> None:
    body = {"inputs": TEXTS[0], "labels": LABELS}
    for name in ("tiny-flat", "tiny-nli", "tiny-sst2"):
        folder = tmp_path / f"with {name}"
        shutil.copytree(models / "parser", folder / "parser")
        shutil.copytree(models / name, folder / name)
        async with serve(models=folder) as client:
            answer = await client.post("/classify", json=body)
            if name == "tiny-sst2":
                said = check(answer, 404, "model_not_found")["message"]
                assert "a bundle of the kind embedding or nli" in said
            else:
                async with serve(models=models) as whole:
                    named = await whole.post("/classify", json={**body, "model": name})
                assert answer.json() == named.json()


async def test_label_sentences_are_encoded_once_and_cached(serve: Serve) -> None:
    async with serve(cache_items=100) as client:
        misses = []
        for text in ("two kids", "the dog"):
            await post(client, "/classify", inputs=text, labels=LABELS)
            page = (await client.get("/metrics")).text
            [line] = [x for x in page.splitlines() if x.startswith("heedful_cache_misses_total{")]
            misses.append(float(line.split()[-1]))
        assert misses == [
            2 * 13,
            2 * 14,
        ]  # each of two models: a text and four sentences a label, then a text
