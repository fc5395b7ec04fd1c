"""Bodies that would hold the event loop."""

import asyncio
import json

import pytest
from pydantic import TypeAdapter, ValidationError

from heedful.app.routes.compat.kserve_tensors import InferRequest
from heedful.app.routes.compat.openai import EmbeddingsRequest
from heedful.app.routes.compat.predict import PredictRequest
from heedful.app.schemas.request_bodies import EmbedRequest, ManyPairs
from tests.app.conftest import Serve
from tests.app.test_errors import JSON, check
from tests.app.test_ndjson import NDJSON

WORD = {"text": "a"}
TENSOR = {"name": "text", "shape": [1], "datatype": "BYTES"}


@pytest.mark.anyio
async def test_counts_are_checked_before_contents(serve: Serve) -> None:
    async with serve(start=False) as client:
        body = b'{"inputs":[true' + b",{}" * 600_000 + b"]}"
        answer = await client.post("/embed", content=body, headers=JSON)
        assert "600001" in check(answer, 413, "too_many_inputs", "inputs")["message"]
        body = json.dumps({"inputs": {"source_sentence": "a", "sentences": [3] * 5000}}).encode()
        answer = await client.post("/similarity", content=body, headers=JSON)
        check(answer, 413, "too_many_inputs", "inputs.sentences")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PredictRequest, {"inputs": [[{}] * 1000]}),
        (EmbedRequest, {"inputs": "a", **{f"field{i}": i for i in range(1000)}}),
        (EmbedRequest, {"inputs": {"displacy": {"words": [{}] * 1000, "arcs": [{}] * 1000}}}),
        (EmbeddingsRequest, {"model": "a", "input": [["a"] * 1000] * 10}),
        (InferRequest, {"inputs": [{**TENSOR, "shape": ["a"] * 1000, "data": []}] * 10}),
        (ManyPairs, {"pairs": [{f"field{i}": i for i in range(100)}] * 10}),
    ],
)
def test_few_errors_are_built(kind: type, body: object) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(body)
    assert caught.value.error_count() <= 102


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [JSON, NDJSON])
async def test_the_event_loop_runs_while_a_large_body_is_read(
    serve: Serve, headers: dict[str, str]
) -> None:
    tree = {"displacy": {"words": [WORD] * 9000, "arcs": []}}
    body = json.dumps({"inputs": [tree] * 8, "truncate": True}).encode()
    ticks = 0
    async with serve(start=False) as client:
        asked = asyncio.create_task(client.post("/embed", content=body, headers=headers))
        while not asked.done():
            await asyncio.sleep(0.001)
            ticks += 1
        assert b'"not_ready"' in (await asked).content  # it was valid, but nothing is loaded
    assert ticks > 8  # 2 or 3 where the loop waits for the reader
