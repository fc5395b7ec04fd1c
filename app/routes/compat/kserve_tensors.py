"""Tensors of the Open Inference Protocol V2: texts in, numbers and labels out.

By Triton's binary extension tensors may follow the JSON as bytes. A header says how many bytes the JSON takes, and the
parameter `binary_data_size` of each tensor how many its own are. Numbers are little-endian; a text comes after its
length in four bytes.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from heedful.app.errors import Refused
from heedful.app.http import responses
from heedful.app.http.body import check_length, parse
from heedful.app.http.request_record import Record
from heedful.app.schemas.base import FIRST_ERROR, IGNORE_UNKNOWN, NOT_EMPTY, StrictModel, refused
from heedful.app.schemas.openapi_responses import BYTES
from heedful.app.schemas.request_bodies import Long, Truncate, not_both
from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.text.arrays import Floats
from heedful.text.kinds import Kind

JSON_SIZE = "Inference-Header-Content-Length"
_SIZE = "binary_data_size"
MAX_DIMENSIONS = 32
"""Of a tensor: as many as numpy had for long. The product of a million sizes would take minutes."""


class InferParameters(StrictModel):
    model_config = IGNORE_UNKNOWN

    truncate: Truncate = None
    long: Annotated[Long, AfterValidator(not_both)] = None
    binary_data_output: bool | None = Field(
        None, description="Triton's: outputs follow the JSON as bytes, unless theirs say otherwise."
    )


def _flat(data: list[Any]) -> list[str]:
    """Nested lists of texts in row-major order. For pydantic, which reads large bodies in a thread."""
    flat: list[str] = []
    for item in data:
        if isinstance(item, list):
            flat += _flat(item)
        elif isinstance(item, str):
            flat.append(item)
        else:
            raise PydanticCustomError("texts_type", "must hold strings")
    return flat


class TensorParameters(StrictModel):
    model_config = IGNORE_UNKNOWN

    binary_data_size: int | None = Field(
        None, description="Triton's: bytes of the tensor, which follows the JSON."
    )


class Tensor(StrictModel):
    model_config = IGNORE_UNKNOWN

    name: str
    shape: Annotated[list[Annotated[int, Field(ge=0)]], FIRST_ERROR] = Field(
        max_length=MAX_DIMENSIONS
    )
    datatype: Literal["BYTES"]
    data: Annotated[list[Any], AfterValidator(_flat)] = Field(
        description="Texts; they may be nested.", json_schema_extra={"minItems": 1}
    )
    parameters: TensorParameters | None = None


class WantedParameters(StrictModel):
    model_config = IGNORE_UNKNOWN

    classification: Annotated[
        None,
        refused("labels are not ranked here; take the outputs label and probabilities"),
        Field(description="Triton's. Refused."),
    ] = None
    binary_data: bool | None = Field(
        None, description="Triton's: the tensor follows the JSON as bytes."
    )


class Wanted(StrictModel):
    model_config = IGNORE_UNKNOWN

    name: str
    parameters: WantedParameters | None = None


class InferRequest(StrictModel):
    model_config = IGNORE_UNKNOWN

    id: str | None = None
    parameters: InferParameters | None = None
    inputs: Annotated[list[Tensor], FIRST_ERROR, NOT_EMPTY]
    outputs: Annotated[list[Wanted], FIRST_ERROR] | None = Field(
        None, description="Without any, all outputs."
    )


class TensorMetadata(BaseModel):
    name: str
    datatype: str
    shape: list[int] = Field(description="-1 stands for the number of inputs.")


class OutputTensor(TensorMetadata):
    data: list[float | str]


@dataclass(frozen=True, slots=True)
class Signature:
    """A kind of model's tensors."""

    task: Task
    inputs: tuple[str, ...]
    scores: str  # the name of its numbers
    labelled: bool


SIGNATURES: Mapping[Kind, Signature] = {
    "embedding": Signature("embed", ("text",), "embedding", labelled=False),
    "classification": Signature("classify", ("text",), "probabilities", labelled=True),
    "nli": Signature("nli", ("premise", "hypothesis"), "probabilities", labelled=True),
    "relatedness": Signature("relatedness", ("a", "b"), "score", labelled=False),
}


def metadata(card: Card) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The model's inputs and outputs."""
    kind = SIGNATURES[card.kind]
    width = {"embedding": [card.dimension], "score": []}.get(kind.scores, [len(card.labels)])
    outputs = [{"name": kind.scores, "datatype": "FP32", "shape": [-1, *width]}]
    if kind.labelled:
        outputs.append({"name": "label", "datatype": "BYTES", "shape": [-1]})
    inputs = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in kind.inputs]
    return inputs, outputs


def read_inputs(tensors: list[Tensor], kind: Signature, max_inputs: int) -> Inputs:
    """The texts of the tensors, which must be those that the model reads. Raises BadInput, TooManyInputs."""
    columns: list[list[str]] = []
    for name in kind.inputs:
        at = next((i for i, tensor in enumerate(tensors) if tensor.name == name), None)
        if at is None:
            names = " and ".join(kind.inputs)
            sent = ", ".join(repr(tensor.name[:100]) for tensor in tensors[:10]) or "none"
            message = f"inputs: the model reads {names}, not {sent}; name a tensor {name}"
            raise BadInput(message, param="inputs")
        tensor, count = tensors[at], len(tensors[at].data)
        if math.prod(tensor.shape) != count:
            path = f"inputs[{at}].shape"
            message = f"{path}: is {tensor.shape}, but data has {count} texts: send [{count}]"
            raise BadInput(message, param=path)
        columns.append(tensor.data)
    for i, tensor in enumerate(tensors):
        if tensor.name not in kind.inputs or tensor.name in {before.name for before in tensors[:i]}:
            path, names = f"inputs[{i}].name", " and ".join(kind.inputs)
            raise BadInput(f"{path}: the model reads {names}, each once; leave it out", param=path)
    if len({len(column) for column in columns}) > 1:
        raise BadInput("inputs: the two tensors differ in length", param="inputs")
    check_length(columns[0], max_inputs, "inputs")
    paths = [f"inputs.{name}[{row}]" for row in range(len(columns[0])) for name in kind.inputs]
    texts = list(itertools.chain.from_iterable(zip(*columns, strict=True)))
    return Inputs(texts, paths, "inputs", len(columns))


def read_body(record: Record, body: bytes) -> Any:
    """JSON, whatever its Content-Type; with Triton's header, tensors follow.

    Raises MalformedBody, BodyTooLarge, Refused.
    """
    size = record.header(JSON_SIZE.lower().encode())
    if not size:
        return parse(body)
    # Python reads no number of more than 4,300 digits.
    if not size.isdecimal() or len(size) > 20 or int(size) > len(body):
        raise _unreadable("Inference-Header-Content-Length is no length within the body")
    value, rest = parse(body[: int(size)]), memoryview(body)[int(size) :]
    tensors = value.get("inputs") if isinstance(value, dict) else None
    for i, tensor in enumerate(tensors if isinstance(tensors, list) else []):
        parameters = tensor.get("parameters") if isinstance(tensor, dict) else None
        if isinstance(parameters, dict) and type(parameters.get(_SIZE)) is int:
            length = parameters[_SIZE]
            if not 0 <= length <= len(rest):
                param = f"inputs[{i}].parameters.{_SIZE}"
                raise _unreadable(f"{param}: the body does not hold as much", param=param)
            tensor["data"] = _strings(bytes(rest[:length]), f"inputs[{i}]")
            rest = rest[length:]
    if rest:
        raise _unreadable(f"the last {len(rest)} bytes belong to no tensor: give each its {_SIZE}")
    return value


def _unreadable(message: str, param: str | None = None) -> Refused:
    return Refused(message, param=param, code="invalid_body")


def _strings(packed: bytes, path: str) -> list[str]:
    """Texts, each after its length in four bytes. Raises Refused."""
    texts = []
    at = 0
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "little")
        text = packed[at + 4 : at + 4 + length]
        if len(text) < length or at + 4 > len(packed):
            raise _unreadable(f"{path}: its bytes end within a text", param=path)
        try:
            texts.append(text.decode())
        except UnicodeDecodeError as error:
            raise _unreadable(f"{path}: a text is not UTF-8: {error}", param=path) from None
        at += 4 + length
    return texts


def tensor_response(
    fields: dict[str, Any], outputs: list[dict[str, Any]], body: InferRequest
) -> Response:
    """The answer: `fields`, and of `outputs` those that the request wants, as JSON or as bytes. Raises BadInput."""
    by_name = {output["name"]: output for output in outputs}
    default = body.parameters is not None and body.parameters.binary_data_output is True
    tensors: list[dict[str, Any]] = []
    packed: list[bytes] = []
    for i, wanted in enumerate(body.outputs or [Wanted(name=name) for name in by_name]):
        if wanted.name not in by_name:
            path, known = f"outputs[{i}].name", ", ".join(by_name)
            message = f"{path}: the model has no output {wanted.name[:100]!r}; it has {known}"
            raise BadInput(message, param=path)
        tensor = dict(by_name[wanted.name])
        asked = wanted.parameters.binary_data if wanted.parameters else None
        if default if asked is None else asked:
            packed.append(_packed(tensor.pop("data")))
            tensor["parameters"] = {_SIZE: len(packed[-1])}
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
