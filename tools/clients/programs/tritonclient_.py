"""Triton's HTTP client: metadata and vectors, in JSON, and with compressed requests."""

from typing import Any

import numpy as np
from tritonclient import http
from tritonclient.utils import InferenceServerException

from tools.clients.programs.common import MODEL, SENTENCES, run


def refusal(client: http.InferenceServerClient) -> str:
    """What a program prints of an error."""
    blank = http.InferInput("text", [1], "BYTES")
    blank.set_data_from_numpy(np.array([" "], dtype=object), binary_data=False)
    try:
        client.infer(MODEL, [blank])
    except InferenceServerException as error:
        return str(error)
    raise AssertionError("a blank text was answered")


def check(url: str) -> dict[str, Any]:
    with http.InferenceServerClient(url.removeprefix("http://")) as client:
        ready = [client.is_server_live(), client.is_server_ready(), client.is_model_ready(MODEL)]
        [output] = client.get_model_metadata(MODEL)["outputs"]
        text = http.InferInput("text", [len(SENTENCES)], "BYTES")
        text.set_data_from_numpy(np.array(SENTENCES, dtype=object), binary_data=False)
        expected = client.infer(MODEL, [text]).as_numpy("embedding")
        assert expected is not None
        for coding in ("gzip", "deflate"):
            answer = client.infer(MODEL, [text], request_compression_algorithm=coding)
            vectors = answer.as_numpy("embedding")
            assert vectors is not None
            np.testing.assert_array_equal(vectors, expected)
        message = refusal(client)
        assert "is blank: send a text" in message, message
        return {
            "live, ready": ready,
            "metadata": output["name"],
            "infer": list(expected.shape),
            "infer, compressed": ["gzip", "deflate"],
            "an error, printed": message,
        }


if __name__ == "__main__":
    run(check)
