"""Triton's HTTP client: metadata and vectors, with binary tensors and without."""

from typing import Any

import numpy as np
from tritonclient import http

from tests.clients.programs.common import MODEL, SENTENCES, run


def check(url: str) -> dict[str, Any]:
    with http.InferenceServerClient(url.removeprefix("http://")) as client:
        ready = [client.is_server_live(), client.is_server_ready(), client.is_model_ready(MODEL)]
        [output] = client.get_model_metadata(MODEL)["outputs"]
        shapes = []
        for binary in (True, False):
            text = http.InferInput("text", [len(SENTENCES)], "BYTES")
            text.set_data_from_numpy(np.array(SENTENCES, dtype=object), binary_data=binary)
            found = client.infer(MODEL, [text]).as_numpy("embedding")
            assert found is not None
            shapes.append(list(found.shape))
        return {
            "live, ready": ready,
            "metadata": output["name"],
            "infer, binary and JSON": shapes,
        }


if __name__ == "__main__":
    run(check)
