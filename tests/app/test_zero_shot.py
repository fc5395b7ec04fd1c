"""/classify with labels of the client's, against /similarity's cosines, /nli's entailment and a sentiment model."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.runtime import zero_shot
from heedful.text.parse import fingerprint
from tests.app.conftest import Serve
from tests.app.posting import TEXTS, Client, ask, check, metrics
from tests.builders import BuiltParser, build_bundle

pytestmark = pytest.mark.anyio
LABELS = ["kids", "bad dog", "hands"]


async def expected(
    client: Client, text: str, kinds: str, templates: Sequence[str]
) -> tuple[Any, float]:
    """Odds (3,) of the labels, and of none of them, computed from what other routes answer.

    The cosine is the mean over the templates, entailment and polarity are of the first.
    """
    sides = [[template.replace("{}", label) for label in LABELS] for template in templates]
    odds, none = np.ones(len(LABELS)), 1.0
    if "cosine" in kinds:
        each = [{"source_sentence": text, "sentences": sentences} for sentences in sides]
        cosines = [await ask(client, "/similarity", inputs=one, model="tiny-flat") for one in each]
        odds *= np.exp(zero_shot.COSINE_WEIGHT * np.mean(cosines, axis=0))
        none *= np.exp(zero_shot.COSINE_WEIGHT * zero_shot.NONE_COSINE)
    if "entailment" in kinds:
        pairs = [{"premise": text, "hypothesis": sentence} for sentence in sides[0]]
        results = (await ask(client, "/nli", pairs=pairs, model="tiny-nli"))["results"]
        odds *= [result["scores"]["entailment"] for result in results]
        none *= zero_shot.NONE_ENTAILMENT
    if "polarity" in kinds:
        rows = await ask(client, "/classify", inputs=[text, *sides[0]], model="tiny-tone")
        by_label = [{one["label"]: one["score"] for one in row} for row in rows]
        of_text, *of_labels = [row["positive"] - row["negative"] for row in by_label]
        odds *= np.exp(zero_shot.POLARITY_WEIGHT * of_text * np.array(of_labels))
    return odds, none


def scores(row: list[dict[str, Any]]) -> list[float]:
    """The scores in the order of LABELS; a row has its best label first."""
    by_label = {entry["label"]: entry["score"] for entry in row}
    assert list(by_label.values()) == sorted(by_label.values(), reverse=True)
    return [by_label[label] for label in LABELS]


async def check_scores(client: Client, kinds: str, **more: str) -> None:
    body: dict[str, Any] = {"inputs": TEXTS, "labels": LABELS, **more}
    template = more.get("hypothesis_template")
    templates = [template] if template else zero_shot.TEMPLATES
    best = await ask(client, "/classify", **body)
    several = await ask(client, "/classify", **body, multi_label=True)
    for text, row, many in zip(TEXTS, best, several, strict=True):
        odds, none = await expected(client, text, kinds, templates)
        np.testing.assert_allclose(scores(row["labels"]), odds / odds.sum(), rtol=1e-3)
        np.testing.assert_allclose(row["none"], none / (odds.sum() + none), rtol=1e-3)
        np.testing.assert_allclose(scores(many["labels"]), odds / (odds + none), rtol=1e-3)
        assert many["none"] == pytest.approx(row["none"])


async def test_scores_come_from_cosine_and_entailment(client: Client) -> None:
    await check_scores(client, "cosine and entailment")
    await check_scores(client, "cosine", model="tiny-flat")
    await check_scores(client, "entailment", model="tiny-nli")
    await check_scores(client, "cosine and entailment", hypothesis_template="the man is not {}")


async def test_a_sentiment_model_scores_labels_too(
    serve: Serve, models: Path, tmp_path: Path
) -> None:
    """Unless the request names a model, or if it has other labels than positive and negative."""
    for part in ("parser", "tiny-flat", "tiny-nli"):
        shutil.copytree(models / part, tmp_path / part)
    parser = BuiltParser(tmp_path / "parser", "en_tiny", fingerprint(tmp_path / "parser"))
    labels = ("negative", "neutral", "positive")
    for task, kinds in (
        ("sentiment", "cosine, entailment, polarity"),
        ("sst2", "cosine, entailment"),
    ):
        build_bundle(tmp_path, parser, name="tiny-tone", task=task, labels=labels)
        async with serve(models=tmp_path) as client:
            await check_scores(client, kinds)
            await check_scores(client, "cosine", model="tiny-flat")


async def test_the_best_labels_a_single_one_and_a_hundred(client: Client) -> None:
    """The limit of inputs, 64 here, does not apply to labels."""
    whole = await ask(client, "/classify", inputs=TEXTS[0], labels=LABELS)
    row = await ask(client, "/classify", inputs=TEXTS[0], labels=LABELS, top_k=2, trust=True)
    assert row["labels"] == whole["labels"][:2]
    assert row["trust"]["confidence"] == pytest.approx(row["labels"][0]["score"])
    row = await ask(client, "/classify", inputs=TEXTS[0], labels=["kids"])
    assert row["labels"][0]["score"] == pytest.approx(1 - row["none"])
    labels = [f"kids {i}" for i in range(101)]
    row = await ask(client, "/classify", inputs="kids", labels=labels[:100])
    assert len(row["labels"]) == 100
    answer = await client.post("/classify", json={"inputs": "kids", "labels": labels})
    assert "at most 100" in check(answer, 422, "invalid_value", "labels")["message"]


@pytest.mark.parametrize("name", ["tiny-flat", "tiny-nli", "tiny-sst2"])
async def test_a_model_of_either_kind_is_enough_and_of_neither_is_refused(
    serve: Serve, client: Client, models: Path, tmp_path: Path, name: str
) -> None:
    body = {"inputs": TEXTS[0], "labels": LABELS}
    for part in ("parser", name):
        (tmp_path / part).symlink_to(models / part)
    async with serve(models=tmp_path) as alone:
        answer = await alone.post("/classify", json=body)
    if name == "tiny-sst2":
        message = check(answer, 404, "model_not_found")["message"]
        assert "a bundle of the kind embedding or nli" in message
    else:
        assert answer.json() == await ask(client, "/classify", **body, model=name)


async def test_label_sentences_are_encoded_once_and_cached(serve: Serve) -> None:
    """A text with four sentences of three labels by one model, with the first of each by the other; then a text."""
    async with serve(cache_items=100) as client:
        for text, misses in (("two kids", 13 + 4), ("the dog", 14 + 5)):
            await ask(client, "/classify", inputs=text, labels=LABELS)
            page = await metrics(client)
            assert f'heedful_cache_misses_total{{cache="vector"}} {misses}.0' in page
