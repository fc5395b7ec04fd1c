"""A bundle that abstains withholds the same labels on every route."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer
from heedful.app.settings import Settings
from tests.app.conftest import ask
from tests.app.test_answers import TEXTS
from tests.app.test_tei import post
from tests.app.test_v2 import infer, tensor
from tests.builders import build_bundle, build_models

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """A service of `tiny-sst2`, which abstains from half of TEXTS."""
    folder = tmp_path_factory.mktemp("unsure")
    parser = build_models(folder)
    async with ask(Settings(models=folder, threads=1)) as sure:
        best = [labels[0]["score"] for labels in await post(sure, "/classify", inputs=TEXTS)]
    build_bundle(folder, parser, explain=True, abstain=float(np.median(best)))
    async with ask(Settings(models=folder, threads=1)) as client:
        yield client


async def test_every_route_withholds_the_same_labels(client: httpx.AsyncClient) -> None:
    classified = await post(client, "/classify", inputs=TEXTS)
    labels = [ranked[0]["label"] for ranked in classified]
    assert set(labels) > {None}
    for ranked in classified:
        if ranked[0]["label"] is None:
            assert ranked[0]["score"] == ranked[1]["score"]
    batch = [[text] for text in TEXTS]
    assert await post(client, "/predict", inputs=batch) == classified
    tensors = await infer(client, "tiny-sst2", tensor("text", TEXTS))
    assert tensors["label"].tolist() == [label or "" for label in labels]
    for text, label, ranked in zip(TEXTS, labels, classified, strict=True):
        found = await post(client, "/explain", inputs=text, evidence=True, ablation=True)
        ExplainAnswer.model_validate(found)
        assert found["prediction"]["label"] == label
        assert found["evidence"]["of"] == ranked[-2]["label"]  # the most probable one
        (without,) = found["ablation"]
        assert without["flips"] == (without["prediction"]["label"] != label)


@pytest.mark.parametrize(
    "more", [{"raw_scores": True}, {"parameters": {"function_to_apply": "none"}}]
)
async def test_logits_are_not_withheld(client: httpx.AsyncClient, more: dict[str, Any]) -> None:
    found = await post(client, "/predict", inputs=[[text] for text in TEXTS], **more)
    assert all(one["label"] for ranked in found for one in ranked)
