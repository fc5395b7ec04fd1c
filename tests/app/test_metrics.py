"""The metrics: every name of docs/operations.md, with right counts and no label that a client can choose."""

import time
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.conftest import Serve

pytestmark = pytest.mark.anyio

NAMES = {
    "requests_total": {"route", "model", "status"},
    "request_duration_seconds_count": {"route", "model"},
    "stage_duration_seconds_count": {"stage", "model"},
    "batch_inputs_count": {"model"},
    "batch_tokens_count": {"model"},
    "padding_ratio_count": {"model"},
    "encoder_cpu_seconds_total": {"model"},
    "queue_inputs": {"stage"},
    "rejected_total": {"reason"},
    "tokens_total": {"model"},
    "truncated_inputs_total": {"model"},
    "composed_tokens_total": {"model"},
    "untypical_inputs_total": {"model"},
    "cache_hits_total": {"cache"},
    "cache_misses_total": {"cache"},
    "process_deaths_total": set(),
    "reloads_total": {"result"},
    "model_info": {"model", "encoder", "task", "version", "provider"},
}


@pytest.fixture
async def counted(serve: Serve) -> AsyncIterator[httpx.AsyncClient]:
    """A service that has counted nothing yet."""
    async with serve() as client:
        yield client


async def read(client: httpx.AsyncClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    page = (await client.get("/metrics")).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"heedful_{name}", frozenset(labels.items())


async def test_every_metric_counts_what_it_says(counted: httpx.AsyncClient) -> None:
    client = counted
    long = "kids " * 30  # 30 tokens, of which the model reads 16
    await client.post("/classify", json={"inputs": ["the kids zyx", "dog"]})
    await client.post("/classify", json={"inputs": long, "truncate": True, "model": "tiny-sst2"})
    await client.post("/classify", json={"inputs": "a", "model": "a client's own word"})
    await client.post("/classify", json={"inputs": ""})
    await client.post("/another/of/its/words", json={})
    await client.get("/health")
    page = await read(client)
    for name, labels in NAMES.items():
        kinds = [set(dict(pairs)) for sample, pairs in page if sample == f"heedful_{name}"]
        assert labels in kinds, name
    requests = {
        (found["route"], found["model"], found["status"]): value
        for (name, pairs), value in page.items()
        if name == "heedful_requests_total" and (found := dict(pairs))
    }
    assert requests == {
        ("/classify", "tiny-sst2", "200"): 2,
        ("/classify", "other", "404"): 1,
        ("/classify", "tiny-sst2", "422"): 1,
        ("other", "none", "404"): 1,
        ("/health", "none", "200"): 1,
    }
    assert page[key("request_duration_seconds_count", route="/classify", model="tiny-sst2")] == 3
    for stage in ("parse", "queue", "inference", "respond"):
        assert page[key("stage_duration_seconds_count", stage=stage, model="tiny-sst2")] == 2
    assert page[key("tokens_total", model="tiny-sst2")] == 3 + 1 + 16
    assert page[key("composed_tokens_total", model="tiny-sst2")] == 1
    assert page[key("truncated_inputs_total", model="tiny-sst2")] == 1
    assert page[key("rejected_total", reason="model_not_found")] == 1
    assert page[key("rejected_total", reason="route_not_found")] == 1
    assert page[key("batch_inputs_sum", model="tiny-sst2")] == 3
    assert page[key("batch_tokens_sum", model="tiny-sst2")] == 20
    encoding = page[key("encoder_cpu_seconds_total", model="tiny-sst2")]
    assert 0 < encoding < time.process_time()
    assert page[key("cache_hits_total", cache="vector")] == 0
    assert page[key("cache_misses_total", cache="vector")] == 3
    assert "word" not in str(page)


async def test_what_is_asked_for_again_is_a_hit(counted: httpx.AsyncClient) -> None:
    for _ in range(3):
        await counted.post("/classify", json={"inputs": ["the kids", "the kids", "dog"]})
    page = await read(counted)
    assert page[key("cache_hits_total", cache="vector")] == 4
    assert page[key("cache_misses_total", cache="vector")] == 2
    assert page[key("batch_inputs_sum", model="tiny-sst2")] == 2


async def test_a_cache_that_is_off_counts_nothing(serve: Serve) -> None:
    async with serve(cache_items=0) as client:
        for _ in range(2):
            await client.post("/classify", json={"inputs": "the kids"})
        page = await read(client)
    assert page[key("batch_inputs_sum", model="tiny-sst2")] == 2
    assert not [name for name, _ in page if name.startswith("heedful_cache_")]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/openmetrics-text;version=1.0.0;q=0.6, text/plain;q=0.3", "openmetrics"),
        ("text/html, application/openmetrics-text;q=0.9, */*;q=0.8", "openmetrics"),
        ("application/openmetrics-text;q=0, */*", "plain"),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.3", "plain"),
        ("application/openmetrics-text;q=0", "plain"),
        ("text/html", "plain"),
        ("application/openmetrics-text; version=1.0.0", "openmetrics"),
    ],
)
async def test_the_page_is_in_the_format_of_the_largest_weight(
    client: httpx.AsyncClient, accept: str, expected: str
) -> None:
    answer = await client.get("/metrics", headers={"Accept": accept})
    assert expected in answer.headers["Content-Type"].partition(";")[0]
    assert answer.text.endswith("# EOF\n") == (expected == "openmetrics")
