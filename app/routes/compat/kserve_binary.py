"""Triton's binary extension of the Open Inference Protocol: JSON, and tensors as bytes after it.

A header says how many bytes the JSON takes, and the parameter `binary_data_size` of each tensor how many its own are.
Numbers are little-endian; a text comes after its length in four bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.responses import Response

from heedful.app.errors import InvalidBody
from heedful.app.http import responses
from heedful.app.http.body import parse
from heedful.app.http.request_record import Record
from heedful.app.schemas.openapi_responses import BYTES
from heedful.text.arrays import Floats

JSON_SIZE = "Inference-Header-Content-Length"
_SIZE = "binary_data_size"


def read_body(record: Record, body: bytes) -> Any:
    """JSON, whatever its Content-Type; with Triton's header, tensors follow.

    Raises MalformedBody, BodyTooLarge, InvalidBody.
    """
    size = record.header(JSON_SIZE.lower().encode())
    if not size:
        return parse(body)
    # Python reads no number of more than 4,300 digits.
    if not size.isdecimal() or len(size) > 20 or int(size) > len(body):
        raise InvalidBody("Inference-Header-Content-Length is no length within the body")
    value, rest = parse(body[: int(size)]), memoryview(body)[int(size) :]
    tensors = value.get("inputs") if isinstance(value, dict) else None
    for i, tensor in enumerate(tensors if isinstance(tensors, list) else []):
        parameters = tensor.get("parameters") if isinstance(tensor, dict) else None
        if isinstance(parameters, dict) and type(parameters.get(_SIZE)) is int:
            length = parameters[_SIZE]
            if not 0 <= length <= len(rest):
                param = f"inputs[{i}].parameters.{_SIZE}"
                raise InvalidBody(f"{param}: the body does not hold as much", param=param)
            tensor["data"] = _strings(bytes(rest[:length]), f"inputs[{i}]")
            rest = rest[length:]
    if rest:
        raise InvalidBody(f"the last {len(rest)} bytes belong to no tensor: give each its {_SIZE}")
    return value


def _strings(packed: bytes, path: str) -> list[str]:
    """Texts, each after its length in four bytes. Raises InvalidBody."""
    texts = []
    at = 0
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "little")
        text = packed[at + 4 : at + 4 + length]
        if len(text) < length or at + 4 > len(packed):
            raise InvalidBody(f"{path}: its bytes end within a text", param=path)
        try:
            texts.append(text.decode())
        except UnicodeDecodeError as error:
            raise InvalidBody(f"{path}: a text is not UTF-8: {error}", param=path) from None
        at += 4 + length
    return texts


def tensor_response(
    fields: dict[str, Any], outputs: Sequence[tuple[dict[str, Any], bool]]
) -> Response:
    """The answer: what is said of it, and its tensors, each with whether it follows as bytes."""
    tensors: list[dict[str, Any]] = []
    packed: list[bytes] = []
    for tensor, in_bytes in outputs:
        if in_bytes:
            packed.append(_packed(tensor["data"]))
            named = {name: tensor[name] for name in ("name", "datatype", "shape")}
            tensors.append({**named, "parameters": {_SIZE: len(packed[-1])}})
        else:
            tensors.append(tensor)
    answer = responses.json({**fields, "outputs": tensors})
    if not packed:
        return answer
    sizes = {JSON_SIZE: str(len(answer.body))}
    return Response(b"".join([answer.body, *packed]), headers=sizes, media_type=BYTES)


def _packed(data: Floats | list[str]) -> bytes:
    if isinstance(data, np.ndarray):
        return data.astype("<f4").tobytes()
    coded = [text.encode() for text in data]
    return b"".join(len(text).to_bytes(4, "little") + text for text in coded)
