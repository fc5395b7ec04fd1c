"""The Open Inference Protocol V2 over HTTP, as KServe's and Triton's clients speak it."""

import importlib.metadata
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from heedful.app.errors import MalformedBody
from heedful.app.http import body as request_body
from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.http.request_record import Record
from heedful.app.routes.compat.kserve_tensors import (
    SIGNATURES,
    InferParameters,
    InferRequest,
    OutputTensor,
    TensorMetadata,
    metadata,
    read_inputs,
    wanted_outputs,
)
from heedful.app.routes.status import ready_processes, ready_service
from heedful.app.schemas.openapi_responses import error_responses
from heedful.app.schemas.response_bodies import ProtocolError
from heedful.runtime.answers import chosen
from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import UnknownModel

TAG = "Open Inference Protocol"
BINARY = b"inference-header-content-length"
"""Triton's header of a request in which tensors in bytes follow the JSON."""


class TensorRoute(InferenceRoute):
    """An inference route whose body is JSON whatever its Content-Type."""

    takes_ndjson = False
    envelope = ProtocolError

    def read(self, record: Record, content: bytes) -> Any:
        """Raises MalformedBody, BodyTooLarge."""
        if BINARY in record.headers:
            raise MalformedBody(
                "tensors in bytes after the JSON are not supported: send them in the JSON as data "
                "(tritonclient: binary_data=False)",
                code="wrong_content_type",
            )
        return request_body.parse_json(content)


router = APIRouter(tags=[TAG])
infer_router = APIRouter(route_class=TensorRoute, tags=[TAG])


class Server(BaseModel):
    name: str
    version: str
    extensions: list[str]


class Live(BaseModel):
    live: bool


class Ready(BaseModel):
    ready: bool


class ModelReady(BaseModel):
    name: str
    ready: bool


class ModelMetadata(BaseModel):
    name: str
    versions: list[str] = Field(description="The one that is loaded.")
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class InferAnswer(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


@router.get("/v2", response_model=Server, responses=error_responses(401, envelope=ProtocolError))
async def server() -> Response:
    """The server's name and version."""
    version = importlib.metadata.version("heedful")
    return responses.json({"name": "heedful", "version": version, "extensions": []})


@router.get("/v2/health/live", response_model=Live)
async def live() -> Response:
    """As /health."""
    return responses.json({"live": True})


@router.get(
    "/v2/health/ready", response_model=Ready, responses=error_responses(503, envelope=ProtocolError)
)
async def ready(request: Request) -> Response:
    """As /ready."""
    ready_processes(request)
    return responses.json({"ready": True})


MODEL_ERRORS = error_responses(401, 404, 503, envelope=ProtocolError)


@router.get("/v2/models/{model}", response_model=ModelMetadata, responses=MODEL_ERRORS)
@router.get(
    "/v2/models/{model}/versions/{version}", response_model=ModelMetadata, responses=MODEL_ERRORS
)
async def model_metadata(request: Request) -> Response:
    """The model's tensors."""
    card = _card(request)
    inputs, outputs = metadata(card)
    fields = {"name": card.name, "versions": [card.version], "platform": "onnxruntime_onnx"}
    return responses.json({**fields, "inputs": inputs, "outputs": outputs})


@router.get("/v2/models/{model}/ready", response_model=ModelReady, responses=MODEL_ERRORS)
@router.get(
    "/v2/models/{model}/versions/{version}/ready", response_model=ModelReady, responses=MODEL_ERRORS
)
async def model_ready(request: Request) -> Response:
    """Whether the model answers."""
    return responses.json({"name": _card(request).name, "ready": True})


@infer_router.post("/v2/models/{model}/infer", response_model=InferAnswer)
@infer_router.post("/v2/models/{model}/versions/{version}/infer", response_model=InferAnswer)
async def infer(body: InferRequest, request: InferenceRequest) -> Response:
    """The model's outputs for texts or pairs of texts."""
    id_field = {} if body.id is None else {"id": responses.repeatable(body.id, "id")}
    signature = SIGNATURES[_card(request).kind]
    model = request.bind(signature.task, request.path_params["model"])
    inputs = read_inputs(body.inputs, signature)
    parameters = body.parameters or InferParameters()
    truncate, mean = request.truncates(parameters.truncate), parameters.long == "mean"
    if signature.task == "embed":
        result = await request.run(
            model.embed(inputs, truncate=truncate, mean=mean, normalize=True)
        )
    elif signature.task == "relatedness":
        result = await request.run(model.relatedness(inputs, truncate=truncate))
    else:
        result = await request.run(model.classify(inputs, truncate=truncate))
    values = np.asarray(result.value)
    numbers = values.astype(np.float32, copy=False).reshape(-1)
    outputs: list[dict[str, Any]] = [
        {"name": signature.scores, "datatype": "FP32", "shape": values.shape, "data": numbers}
    ]
    if result.card.labels:
        # A BYTES tensor has no null.
        labels = [label or "" for label in chosen(result.card, values)]
        outputs.append(
            {"name": "label", "datatype": "BYTES", "shape": [len(labels)], "data": labels}
        )
    fields = {"model_name": result.card.name, "model_version": result.card.version}
    return responses.json({**fields, **id_field, "outputs": wanted_outputs(outputs, body)})


def _card(request: Request) -> Card:
    """The card of the model that the path names. Raises Unavailable, UnknownModel."""
    ready_service(request)
    parameters = request.path_params
    inference = InferenceRequest(request.scope, request.receive).bind("embed", parameters["model"])
    card = inference.model.card  # each model embeds
    if parameters.get("version", card.version) != card.version:
        message = f"{card.name} has only the version {card.version}; leave the version out"
        raise UnknownModel(message, param="version")
    return card
