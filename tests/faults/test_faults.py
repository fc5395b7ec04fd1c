"""The scenarios, run briefly. They assert what must hold for each request; `make soak` runs them at
length and writes docs/reliability.md."""

import pytest

from tests.faults.chaos import chaos
from tests.faults.endurance import for_requests, mixed_traffic, overload
from tests.faults.scenarios import Place, kill_servers, reload, terminate, vanish

pytestmark = pytest.mark.anyio


async def test_a_killed_process_breaks_no_request_but_those_in_its_hands(place: Place) -> None:
    kills = await kill_servers(place, rounds=1)
    assert kills.requests["200"] > 0


async def test_clients_that_vanish_leave_nothing_behind(place: Place) -> None:
    await vanish(place, clients=60)


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
    reloads = await reload(place, rounds=20)
    assert reloads.refused == 10
    assert min(reloads.answered_by.values()) > 0


async def test_overload_is_refused_and_accepted_requests_are_answered(place: Place) -> None:
    """`make soak` judges how fast; here every answer has the right shape, and both kinds occur."""
    stormy = await overload(place, seconds=3, calibration=1)
    assert stormy.requests["429"] > 0
    assert stormy.requests["200"] > 0


REQUESTS, SETTLED, MAX_GROWTH = 4200, 0.65, 5.0  # percent; memory settles after some 2,500 requests
SMALL = {"cache-items": 64}  # so that the caches have filled by then


async def test_memory_does_not_grow(place: Place) -> None:
    memory = await mixed_traffic(place, for_requests(REQUESTS), SETTLED, SMALL)
    assert memory.grew_percent < MAX_GROWTH


async def test_a_leak_would_be_seen(place: Place) -> None:
    leaking = "tests.faults.leaking"
    memory = await mixed_traffic(place, for_requests(REQUESTS), SETTLED, SMALL, module=leaking)
    assert memory.grew_percent > MAX_GROWTH
