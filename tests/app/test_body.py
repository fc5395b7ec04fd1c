"""How a body is read: strict JSON, whatever the bytes; large ones neither hold the event loop nor the memory."""

import asyncio
import gzip
import json
import math
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from heedful.app.errors import BodyTooLarge, MalformedBody
from heedful.app.http.body import MAX_CONTAINERS, MAX_DEPTH, parse_json
from heedful.app.routes.compat.kserve_tensors import InferRequest
from heedful.app.schemas.request_bodies import EmbedRequest, ManyPairs
from heedful.app.settings import Settings
from tests.app.conftest import Serve
from tests.app.posting import JSON, NDJSON, Client, check

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),  # lone surrogates among them
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
unhurried = settings(suppress_health_check=[HealthCheck.too_slow])


@unhurried
@given(VALUES)
def test_reads_what_json_wrote(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@unhurried
@given(st.binary())
def test_any_bytes_are_a_value_or_refused(body: bytes) -> None:
    try:
        value = parse_json(body)
    except MalformedBody:
        return
    assert value == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"NaN", b'{"a": Infinity}', b'{"a": "\\ud800", "b": NaN}', b"'a'"),
        *(b'{"a": "\\ud800", "b": 1e999}', b'{"a": "\\ud800",}', b'"\\ud800' + b"[" * 100_000),
        b'"\xed\xa0\x80"',  # a surrogate in raw bytes is no UTF-8
    ],
)
def test_refuses_what_is_no_json(body: bytes) -> None:
    with pytest.raises(MalformedBody, match=r"not (JSON|UTF-8)"):
        parse_json(body)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_is_limited(opening: bytes, closing: bytes) -> None:
    deepest = opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH
    wide = b"[" + b"[]," * MAX_DEPTH + b'"[[["]'
    both = b"[" + b"[]," * MAX_DEPTH + deepest[len(opening) : -len(closing)] + b"]"
    for value in (deepest, wide, both):
        assert parse_json(value) == json.loads(value)
    for value in (deepest, b'"\\ud800",' + deepest, b'"\\\\","\\"",' + deepest):
        with pytest.raises(MalformedBody, match=f"more than {MAX_DEPTH} deep"):
            parse_json(b"[" + value + b"]")


@pytest.mark.parametrize("unit", [b"[]", b'{"]":{}}', b'"\\\\",[]', b'"\\"",[]', b'"["  ,[]'])
def test_the_lists_and_objects_are_counted_before_they_are_built(unit: bytes) -> None:
    with pytest.raises(BodyTooLarge, match=f"more than {MAX_CONTAINERS}: send several requests"):
        parse_json(b"[" + b",".join([unit] * MAX_CONTAINERS))  # not even JSON


def test_what_looks_like_too_much_is_read() -> None:
    """Brackets in a text, the largest trees; a lone surrogate is let through for the runtime to name."""
    for text in ("[" * (MAX_CONTAINERS + 1), '\\"[{' * MAX_CONTAINERS):
        assert parse_json(json.dumps([text]).encode()) == [text]
    word = b'{"text":"a"}'
    words = Settings.model_fields["max_body_bytes"].default // (len(word) + 1)
    assert len(parse_json(b"[" + b",".join([word] * words) + b"]")) == words
    assert parse_json(b'{"inputs": "\\ud800", "x": 0.5}') == {"inputs": "\ud800", "x": 0.5}
    assert math.isfinite(parse_json(b'["\\ud800", 1e300]')[1])


TENSOR = {"name": "text", "shape": ["a"] * 1000, "datatype": "BYTES", "data": []}
FIELDS = {f"field{i}": i for i in range(1000)}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EmbedRequest, {"inputs": {"displacy": {"words": [{}] * 1000, "arcs": [{}] * 1000}}}),
        (InferRequest, {"inputs": [TENSOR] * 10}),
        (ManyPairs, {"pairs": [FIELDS] * 10}),
    ],
)
def test_few_errors_are_built(kind: type, body: object) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(body)
    assert caught.value.error_count() <= 102


@pytest.fixture(scope="module")
async def idle(serve: Serve) -> AsyncIterator[Client]:
    """A service whose models were never loaded: a body that it has read gets "not_ready"."""
    async with serve(start=False, max_body_bytes=1000) as client:
        yield client


A = b'{"inputs": "a"}'
ZIPPED = gzip.compress(A, mtime=0)  # without the time, so that every process names its tests alike
PLAIN, CAFE = "application/json", '{"inputs": "café"}'
SENT: list[tuple[str | None, str, bytes, str]] = [
    ("application/json; charset=utf-8", "identity", A, "not_ready"),
    ("application/problem+json", "identity", b"\xef\xbb\xbf" + A, "not_ready"),
    (PLAIN, "gzip", ZIPPED, "not_ready"),
    (PLAIN, "x-gzip", gzip.compress(A[:9], mtime=0) + gzip.compress(A[9:], mtime=0), "not_ready"),
    (PLAIN, "deflate", zlib.compress(A.ljust(1000)), "not_ready"),
    (None, "identity", A, "wrong_content_type"),
    ("text/plain", "identity", A, "wrong_content_type"),
    (PLAIN, "br", A, "wrong_content_encoding"),
    (PLAIN, "gzip", A, "wrong_content_encoding"),
    (PLAIN, "gzip", ZIPPED[:-4], "wrong_content_encoding"),
    (PLAIN, "deflate", zlib.compress(A)[:-4], "wrong_content_encoding"),
    (PLAIN, "deflate", zlib.compress(A) + A, "wrong_content_encoding"),
    (PLAIN, "gzip", gzip.compress(A.ljust(1001), mtime=0), "body_too_large"),
    (PLAIN, "deflate", zlib.compress(b" " * 1_000_000), "body_too_large"),
    (PLAIN, "identity", A.ljust(1001), "body_too_large"),
    (PLAIN, "identity", CAFE.encode("utf-16"), "invalid_json"),
    (PLAIN, "identity", CAFE.encode("cp1252"), "invalid_json"),
]
"""Content-Type, Content-Encoding, body, and the error's code."""
STATUSES = {"not_ready": 503, "body_too_large": 413}


@pytest.mark.anyio
@pytest.mark.parametrize(("media", "coding", "body", "code"), SENT)
async def test_types_and_codings(
    idle: Client, media: str | None, coding: str, body: bytes, code: str
) -> None:
    headers = {"Content-Encoding": coding} | ({"Content-Type": media} if media else {})
    answer = await idle.post("/embed", content=body, headers=headers)
    message = check(answer, STATUSES.get(code, 400), code)["message"]
    assert "the body is not UTF-8 (byte 0x" in message or code != "invalid_json"
    assert "Content-Type" in message or code != "wrong_content_type"


@pytest.mark.anyio
async def test_no_more_of_a_body_is_read_than_the_limit(idle: Client) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    answer = await idle.post("/embed", content=never(), headers={**JSON, "Content-Length": "1001"})
    assert "1000" in check(answer, 413, "body_too_large")["message"]
    assert answer.headers["Connection"] == "close"
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b" " * 100

    check(await idle.post("/embed", content=endless(), headers=JSON), 413, "body_too_large")
    assert sent <= 1200  # the chunk that broke the limit, and one that httpx holds ready


@pytest.mark.anyio
async def test_counts_are_checked_before_contents(serve: Serve) -> None:
    async with serve(start=False) as client:
        body = b'{"inputs":[true' + b",{}" * 600_000 + b"]}"
        answer = await client.post("/embed", content=body, headers=JSON)
        assert "600001" in check(answer, 413, "too_many_inputs", "inputs")["message"]


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [JSON, NDJSON])
async def test_the_event_loop_runs_while_a_large_body_is_read(
    serve: Serve, headers: dict[str, str]
) -> None:
    tree = {"displacy": {"words": [{"text": "a"}] * 9000, "arcs": []}}
    body = json.dumps({"inputs": [tree] * 8, "truncate": True}).encode()
    ticks = 0
    async with serve(start=False) as client:
        request = asyncio.create_task(client.post("/embed", content=body, headers=headers))
        while not request.done():
            await asyncio.sleep(0.001)
            ticks += 1
        assert b'"not_ready"' in (await request).content  # it was valid, but nothing is loaded
    assert ticks > 8  # 2 or 3 where the loop waits for the reader
