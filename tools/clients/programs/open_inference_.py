"""open-inference-openapi, the client that is generated from the protocol's document."""

from typing import Any

from open_inference.openapi.client import OpenInferenceClient
from open_inference.openapi.types import InferenceRequest

from tools.clients.programs.common import MODEL, SENTENCES, run


def check(url: str) -> dict[str, Any]:
    client = OpenInferenceClient(base_url=url)
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness(MODEL)
    text = {"name": "text", "shape": [4], "datatype": "BYTES", "data": SENTENCES}
    answer = client.model_infer(MODEL, request=InferenceRequest.parse_obj({"inputs": [text]}))
    return {
        "readiness": True,
        "metadata": [client.read_server_metadata().name, client.read_model_metadata(MODEL).name],
        "infer": answer.outputs[0].shape,
    }


if __name__ == "__main__":
    run(check)
