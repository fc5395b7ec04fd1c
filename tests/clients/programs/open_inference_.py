"""open-inference-openapi, the client that is generated from the protocol's document."""

from typing import Any

from open_inference.openapi.client import InferenceRequest, OpenInferenceClient

from tests.clients.programs.common import MODEL, SENTENCES, run


def check(url: str) -> dict[str, Any]:
    client = OpenInferenceClient(base_url=url)
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness(MODEL)
    text = {"name": "text", "shape": [4], "datatype": "BYTES", "data": SENTENCES}
    answer = client.model_infer(MODEL, request=InferenceRequest(inputs=[text]))
    return {
        "readiness": True,
        "metadata": [client.read_server_metadata().name, client.read_model_metadata(MODEL).name],
        "infer": answer.outputs[0].shape,
    }


if __name__ == "__main__":
    run(check)
