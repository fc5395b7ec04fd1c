"""Tensors of the Open Inference Protocol V2 in JSON: texts in, numbers and labels out."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from heedful.app.schemas.base import FIRST_ERROR, InputList, OpenModel, refused
from heedful.app.schemas.request_bodies import Long, Truncate
from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.text.kinds import Kind

MAX_DIMENSIONS = 32
"""Of a tensor, as in numpy 1. The product of a million sizes would take minutes."""


class InferParameters(OpenModel):
    truncate: Truncate = None
    long: Long = None


def _flat(data: list[Any]) -> list[str]:
    """Nested lists of texts in row-major order. As part of validation, which happens in a thread for large bodies."""
    flat: list[str] = []
    for item in data:
        if isinstance(item, list):
            flat += _flat(item)
        elif isinstance(item, str):
            flat.append(item)
        else:
            raise PydanticCustomError("texts_type", "must hold strings")
    return flat


class Tensor(OpenModel):
    name: str
    shape: list[Annotated[int, Field(ge=0)]] = Field(max_length=MAX_DIMENSIONS, fail_fast=True)
    datatype: Literal["BYTES"]
    data: Annotated[list[Any], AfterValidator(_flat)] = Field(
        description="Texts; they may be nested.", json_schema_extra={"minItems": 1}
    )


class WantedParameters(OpenModel):
    classification: Annotated[
        None,
        refused("labels are not ranked here; take the outputs label and probabilities"),
        Field(description="Triton's. Refused."),
    ] = None


class Wanted(OpenModel):
    name: str
    parameters: WantedParameters | None = None


class InferRequest(OpenModel):
    id: str | None = None
    parameters: InferParameters | None = None
    inputs: InputList[Tensor]
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
    """The tensors of a kind of model."""

    task: Task
    inputs: tuple[str, ...]
    scores: str  # the name of the output with numbers


SIGNATURES: Mapping[Kind, Signature] = {
    "embedding": Signature("embed", ("text",), "embedding"),
    "classification": Signature("classify", ("text",), "probabilities"),
    "nli": Signature("nli", ("premise", "hypothesis"), "probabilities"),
    "relatedness": Signature("relatedness", ("a", "b"), "score"),
}


def metadata(card: Card) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The model's inputs and outputs."""
    signature = SIGNATURES[card.kind]
    width = {"embedding": [card.dimension], "score": []}.get(signature.scores, [len(card.labels)])
    outputs = [{"name": signature.scores, "datatype": "FP32", "shape": [-1, *width]}]
    if card.labels:
        outputs.append({"name": "label", "datatype": "BYTES", "shape": [-1]})
    inputs = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in signature.inputs]
    return inputs, outputs


def read_inputs(tensors: list[Tensor], signature: Signature) -> Inputs:
    """The texts of the tensors, which must be the model's inputs. Raises BadInput."""
    names = " and ".join(signature.inputs)
    by_name: dict[str, list[str]] = {}
    for name in signature.inputs:
        if all(tensor.name != name for tensor in tensors):
            sent = ", ".join(repr(tensor.name[:100]) for tensor in tensors[:10]) or "none"
            message = f"inputs: the model reads {names}, not {sent}; name a tensor {name}"
            raise BadInput(message, param="inputs")
    for i, tensor in enumerate(tensors):
        if tensor.name not in signature.inputs or tensor.name in by_name:
            path = f"inputs[{i}].name"
            raise BadInput(f"{path}: the model reads {names}, each once; leave it out", param=path)
        count = len(tensor.data)
        if math.prod(tensor.shape) != count:
            path = f"inputs[{i}].shape"
            message = f"{path}: is {tensor.shape}, but data has {count} texts: send [{count}]"
            raise BadInput(message, param=path)
        by_name[tensor.name] = tensor.data
    columns = [by_name[name] for name in signature.inputs]
    if len({len(column) for column in columns}) > 1:
        raise BadInput("inputs: the two tensors differ in length", param="inputs")
    paths = [f"inputs.{name}[{row}]" for row in range(len(columns[0])) for name in signature.inputs]
    texts = list(itertools.chain.from_iterable(zip(*columns, strict=True)))
    return Inputs(texts, paths, "inputs", len(columns), "set parameters.truncate to true")


def wanted_outputs(outputs: list[dict[str, Any]], body: InferRequest) -> list[dict[str, Any]]:
    """The outputs that the request names, in its order; without names, all. Raises BadInput."""
    by_name = {output["name"]: output for output in outputs}
    for i, wanted in enumerate(body.outputs or ()):
        if wanted.name not in by_name:
            path, known = f"outputs[{i}].name", ", ".join(by_name)
            message = f"{path}: the model has no output {wanted.name[:100]!r}; it has {known}"
            raise BadInput(message, param=path)
    return [by_name[wanted.name] for wanted in body.outputs] if body.outputs else outputs
