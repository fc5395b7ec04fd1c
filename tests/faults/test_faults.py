"""Scenarios of the soak, run briefly. They assert what must hold for each request; `make soak` runs them and others
at length and writes docs/reliability.md."""

from pathlib import Path

import pytest

from benchmarks.soak.abuse import long_headers, pipelines
from benchmarks.soak.chaos import chaos
from benchmarks.soak.endurance import for_requests, mixed_traffic, overload
from benchmarks.soak.scenarios import Place, reload, terminate

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def place(models: Path, tmp_path: Path) -> Place:
    return Place(models, "tiny-sst2", tmp_path)


async def test_sigterm_loses_no_request_that_was_taken(place: Place) -> None:
    ends = await terminate(place, rounds=1)
    assert ends.requests["200"] > 0


async def test_strict_clients_get_right_answers_and_nothing_else(place: Place) -> None:
    """`make chaos` runs it for three minutes."""
    found = await chaos(place, seconds=6, clients=16)
    assert found.kills
    assert found.stops
    assert found.answers_compared > 50


async def test_reloads_fail_no_request_and_mix_no_models(place: Place) -> None:
    reloads = await reload(place, rounds=8)
    assert reloads.refused == 4
    assert min(reloads.answered_by.values()) > 0


async def test_overload_is_refused_and_accepted_requests_are_answered(place: Place) -> None:
    """`make soak` judges how fast; here every answer has the right shape, and both kinds occur."""
    stormy = await overload(place, seconds=2, calibration=1)
    assert stormy.requests["429"] > 0
    assert stormy.requests["200"] > 0


async def test_floods_cost_no_memory(place: Place) -> None:
    """Headers without an end, and pipelined requests whose answers nobody reads."""
    assert (await long_headers(place, megabytes=30)).megabytes_grown < 20
    assert (await pipelines(place, connections=40)).megabytes_grown < 50


async def test_memory_does_not_grow(place: Place) -> None:
    """By 5 %, after some 2,500 requests that it takes to settle. The soak has the control, a service that leaks."""
    small = {"cache-items": 64}  # so that the caches have filled by then
    memory = await mixed_traffic(place, for_requests(4200), settled=0.65, flags=small)
    assert memory.grew_percent < 5.0
