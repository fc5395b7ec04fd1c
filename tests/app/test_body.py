"""How a body is read: strict JSON, whatever the bytes."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.app.errors import BodyTooLarge, MalformedBody
from heedful.app.http.body import MAX_CONTAINERS, MAX_DEPTH, parse
from heedful.app.settings import Settings

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
    assert parse(json.dumps(value).encode()) == value


@unhurried
@given(st.binary())
def test_any_bytes_are_a_value_or_refused(body: bytes) -> None:
    try:
        value = parse(body)
    except MalformedBody:
        return
    assert value == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"NaN",
        b'{"a": Infinity}',
        b'{"a": "\\ud800", "b": NaN}',
        b'{"a": "\\ud800", "b": -Infinity}',
        b'{"a": "\\ud800", "b": 1e999}',
        b'{"a": "\\ud800",}',
        b'"\xed\xa0\x80"',  # a surrogate in raw bytes is no UTF-8
        b"\xff\xfe{\x00}\x00",
        b"'a'",
        b'"\\ud800' + b"[" * 100_000,
    ],
)
def test_refuses_what_is_no_json(body: bytes) -> None:
    with pytest.raises(MalformedBody, match=r"not (JSON|UTF-8)"):
        parse(body)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_is_limited(opening: bytes, closing: bytes) -> None:
    deepest = opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH
    wide = b"[" + b"[]," * MAX_DEPTH + b'"[[["]'
    assert parse(deepest) == json.loads(deepest)
    beside = b"[" + b"[]," * MAX_DEPTH + deepest[len(opening) : -len(closing)] + b"]"
    assert parse(wide) == json.loads(wide)
    assert parse(beside) == json.loads(beside)
    for value in (deepest, b'"\\ud800",' + deepest, b'"\\\\","\\"",' + deepest):
        with pytest.raises(MalformedBody, match=f"more than {MAX_DEPTH} deep"):
            parse(b"[" + value + b"]")


@pytest.mark.parametrize("unit", [b"[]", b'{"]":{}}', b'"\\\\",[]', b'"\\"",[]', b'"["  ,[]'])
def test_the_lists_and_objects_are_counted_before_they_are_built(unit: bytes) -> None:
    with pytest.raises(BodyTooLarge, match=f"more than {MAX_CONTAINERS}: send several requests"):
        parse(b"[" + b",".join([unit] * MAX_CONTAINERS))  # not even JSON


def test_what_looks_like_lists_in_a_text_is_not_counted() -> None:
    for text in ("[" * (MAX_CONTAINERS + 1), '\\"[{' * MAX_CONTAINERS):
        assert parse(json.dumps([text]).encode()) == [text]


def test_the_largest_trees_are_read() -> None:
    word = b'{"text":"a"}'
    words = Settings.model_fields["max_body_bytes"].default // (len(word) + 1)
    assert len(parse(b"[" + b",".join([word] * words) + b"]")) == words


def test_a_lone_surrogate_is_let_through_for_the_runtime_to_name() -> None:
    assert parse(b'{"inputs": "\\ud800", "x": 0.5}') == {"inputs": "\ud800", "x": 0.5}
    assert math.isfinite(parse(b'["\\ud800", 1e300]')[1])
