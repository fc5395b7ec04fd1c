"""Tensors of the Open Inference Protocol V2: texts in, numbers and labels out."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError
from starlette.types import Scope

from heedful.app import record
from heedful.app.closed import FIRST_ERROR, NOT_EMPTY, Closed
from heedful.app.errors import InvalidBody
from heedful.app.fields import PASS_OVER, refused
from heedful.app.large import check_length
from heedful.app.schemas import Long, Truncate, not_both
from heedful.app.strict_json import parse
from heedful.runtime.card import Card
from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.text.kinds import Kind

JSON_SIZE = b"inference-header-content-length"
"""The header of Triton's binary extension: the body is that many bytes of JSON, then tensors."""
MAX_DIMENSIONS = 32
"""Of a tensor: as many as numpy had for long. The product of a million sizes would take minutes."""


class InferParameters(Closed):
    model_config = PASS_OVER

    truncate: Truncate = None
    long: Annotated[Long, AfterValidator(not_both)] = None


def _flat(data: list[Any]) -> list[str]:
    """Nested lists of texts in row-major order. For pydantic, which reads large bodies in a thread."""
    flat: list[str] = []
    _add(data, flat)
    return flat


def _add(data: list[Any], flat: list[str]) -> None:
    """Append the texts to `flat`."""
    for item in data:
        if isinstance(item, list):
            _add(item, flat)
        elif isinstance(item, str):
            flat.append(item)
        else:
            raise PydanticCustomError("texts_type", "must hold strings")


class TensorParameters(Closed):
    model_config = PASS_OVER

    binary_data_size: int | None = Field(
        None, description="Triton's: bytes of the tensor, which follows the JSON."
    )


class Tensor(Closed):
    model_config = PASS_OVER

    name: str
    shape: Annotated[list[Annotated[int, Field(ge=0)]], FIRST_ERROR] = Field(
        max_length=MAX_DIMENSIONS
    )
    datatype: Literal["BYTES"]
    data: Annotated[list[Any], AfterValidator(_flat)] = Field(
        description="Texts; they may be nested.", json_schema_extra={"minItems": 1}
    )
    parameters: TensorParameters | None = None


class WantedParameters(Closed):
    model_config = PASS_OVER

    classification: Annotated[
        None,
        refused("labels are not ranked here; take the outputs label and probabilities"),
        Field(description="Triton's. Refused."),
    ] = None


class Wanted(Closed):
    model_config = PASS_OVER

    name: str
    parameters: WantedParameters | None = None


class InferRequest(Closed):
    model_config = PASS_OVER

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
            raise BadInput(f"inputs: the model reads {names}; send {name}", param="inputs")
        columns.append(_texts(tensors[at], f"inputs[{at}]"))
    for i, tensor in enumerate(tensors):
        if tensor.name not in kind.inputs or tensor.name in {one.name for one in tensors[:i]}:
            path, names = f"inputs[{i}].name", " and ".join(kind.inputs)
            raise BadInput(f"{path}: the model reads {names}, each once; leave it out", param=path)
    if len({len(column) for column in columns}) > 1:
        raise BadInput("inputs: the two tensors differ in length", param="inputs")
    check_length(columns[0], max_inputs, "inputs")
    paths = [f"inputs.{name}[{row}]" for row in range(len(columns[0])) for name in kind.inputs]
    texts = list(itertools.chain.from_iterable(zip(*columns, strict=True)))
    return Inputs(texts, paths, "inputs", len(columns))


def _texts(tensor: Tensor, path: str) -> list[str]:
    """The tensor's texts in row-major order. Raises BadInput."""
    if math.prod(tensor.shape) != len(tensor.data):
        count = len(tensor.data)
        raise BadInput(
            f"{path}.shape: is {tensor.shape}, but data has {count} texts: send [{count}]",
            param=f"{path}.shape",
        )
    return tensor.data


def read_body(scope: Scope, body: bytes) -> Any:
    """JSON, whatever its Content-Type; with Triton's header, tensors follow.

    Raises MalformedBody, BodyTooLarge, InvalidBody.
    """
    size = record.header(scope, JSON_SIZE)
    if not size:
        return parse(body)
    # Python reads no number of more than 4,300 digits.
    if not size.isdecimal() or len(size) > 20 or int(size) > len(body):
        raise InvalidBody("Inference-Header-Content-Length is no length within the body")
    value, rest = parse(body[: int(size)]), memoryview(body)[int(size) :]
    tensors = value.get("inputs") if isinstance(value, dict) else None
    for i, tensor in enumerate(tensors if isinstance(tensors, list) else []):
        parameters = tensor.get("parameters") if isinstance(tensor, dict) else None
        if isinstance(parameters, dict) and type(parameters.get("binary_data_size")) is int:
            length = parameters["binary_data_size"]
            if not 0 <= length <= len(rest):
                param = f"inputs[{i}].parameters.binary_data_size"
                raise InvalidBody(f"{param}: the body does not hold as much", param=param)
            tensor["data"] = _strings(bytes(rest[:length]), f"inputs[{i}]")
            rest = rest[length:]
    return value


def _strings(packed: bytes, path: str) -> list[str]:
    """Texts, each after its length in four bytes. Raises InvalidBody."""
    found = []
    at = 0
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "little")
        text = packed[at + 4 : at + 4 + length]
        if len(text) < length or at + 4 > len(packed):
            raise InvalidBody(f"{path}: its bytes end within a text", param=path)
        try:
            found.append(text.decode())
        except UnicodeDecodeError as error:
            raise InvalidBody(f"{path}: a text is not UTF-8: {error}", param=path) from None
        at += 4 + length
    return found
