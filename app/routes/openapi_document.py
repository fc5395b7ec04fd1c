"""The OpenAPI document: FastAPI's, with the API key, the headers of answers, examples, and NDJSON."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from heedful.app.http.body import NDJSON
from heedful.app.http.inference_route import InferenceRoute
from heedful.app.http.request_record import PUBLIC

HEADERS = {
    "X-Request-Id": ("string", "The request's id: the client's own, if it sent one."),
    "Server-Timing": (
        "string",
        "Milliseconds: total, and where a model ran parse, queue and inference.",
    ),
    "X-Truncated": ("integer", "How many inputs were cut, if any."),
    "X-Windows": ("integer", "How many inputs have the mean of their windows, if any."),
    "X-Warning": ("string", "How many inputs the models were not trained to read, if any."),
    "X-Ignored-Fields": (
        "string",
        "Names of the fields that the route does not know, percent-encoded.",
    ),
    "Retry-After": ("integer", "Seconds after which to try again."),
    "WWW-Authenticate": ("string", "Bearer: send the API key in Authorization."),
}
NOTES = ("X-Truncated", "X-Windows", "X-Warning", "X-Ignored-Fields")
"""Headers of an inference route's answer."""
HEADERS_BY_STATUS = {"401": ("WWW-Authenticate",), "429": ("Retry-After",)}

_RANK: Mapping[str, Any] = {
    "query": "Kids wash their hands.",
    "documents": ["A dog barks.", "Children clean up."],
    "top_n": 1,
}
_TENSORS: Mapping[str, Any] = {
    "inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["A witty movie."]}]
}
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "/embed": {"inputs": ["Kids wash their hands.", "A dog barks."]},
    "/": {"inputs": ["Kids wash their hands.", "A dog barks."]},
    "/nli": {"premise": "A man sleeps.", "hypothesis": "Nobody is awake."},
    "/relatedness": {
        "pairs": [{"a": "A man is playing a guitar.", "b": "Somebody plays an instrument."}]
    },
    "/classify": {
        "inputs": ["A gorgeous, witty, seductive movie.", "Two hours that feel like four."]
    },
    "/predict": {"inputs": ["A man sleeps.", "Nobody is awake."]},
    "/similarity": {
        "inputs": {
            "source_sentence": "Kids wash their hands.",
            "sentences": ["Children clean up.", "A dog barks."],
        }
    },
    "/rerank": {
        "query": "Kids wash their hands.",
        "texts": ["A dog barks.", "Children clean up."],
        "return_text": True,
    },
    "/tokenize": {"inputs": "Kids wash hands."},
    "/explain": {"inputs": "It is not without charm.", "evidence": True},
    "/v1/embeddings": {"input": "Kids wash their hands.", "model": "ms-san-embed"},
    "/v1/rerank": _RANK,
    "/v2/embed": {
        "model": "ms-san-embed",
        "texts": ["Kids wash their hands."],
        "embedding_types": ["int8", "ubinary"],
    },
    "/v2/rerank": _RANK,
    "/v2/models/{model}/infer": _TENSORS,
    "/v2/models/{model}/versions/{version}/infer": _TENSORS,
}
"""A body for each path, which the shipped bundles answer. Without an example Swagger UI fills in each field, and
"string" for a model, which no service has."""


def with_details(document: dict[str, Any], routes: Collection[InferenceRoute]) -> dict[str, Any]:
    """FastAPI's document with the rest of ours. `routes` are the inference routes."""
    inference_paths = {route.path for route in routes}
    ndjson_paths = {route.path for route in routes if route.takes_ndjson}
    document["servers"] = [{"url": "."}]  # where the document is, behind a proxy's path too
    components = document["components"]
    scheme = {"type": "http", "scheme": "bearer", "description": "Where the service has keys."}
    components["securitySchemes"] = {"key": scheme}
    components["headers"] = {
        name: {"description": description, "schema": {"type": kind}}
        for name, (kind, description) in HEADERS.items()
    }
    for path, operations in document["paths"].items():
        parameter = {"in": "path", "required": True, "schema": {"type": "string"}}
        parameters = [{"name": name, **parameter} for name in re.findall(r"{(\w+)}", path)]
        for operation in operations.values():
            if parameters:  # declared as arguments of the function, they would bring FastAPI's 422
                operation["parameters"] = parameters
            if path not in PUBLIC:
                operation["security"] = [{"key": []}, {}]
            for status, response in operation["responses"].items():
                names = ["X-Request-Id", "Server-Timing", *HEADERS_BY_STATUS.get(status, ())]
                names += NOTES if path in inference_paths and status == "200" else ()
                response["headers"] = response.get("headers", {}) | {
                    name: {"$ref": f"#/components/headers/{name}"} for name in names
                }
        if path in EXAMPLES:
            content = operations["post"]["requestBody"]["content"]
            content["application/json"]["example"] = EXAMPLES[path]
        if path in ndjson_paths:
            _add_ndjson(operations["post"], EXAMPLES[path])
    return document


def _add_ndjson(operation: dict[str, Any], line: Mapping[str, Any]) -> None:
    """Add to the operation that it takes NDJSON too, lines such as `line`, and answers each line with a line."""
    for part, description in (
        (operation["requestBody"], "A request a line, each with an `id` if you like."),
        (
            operation["responses"]["200"],
            'Of each line {"line", "id", "headers", "answer"}, or {"line", "id", "error"}.',
        ),
    ):
        part["content"][NDJSON] = {"schema": {"type": "string", "description": description}}
    operation["requestBody"]["content"][NDJSON]["example"] = json.dumps({**line, "id": 1}) + "\n"
