"""LitServe with its batching."""

from typing import Any

import litserve
import numpy as np
import numpy.typing as npt
import orjson
from starlette.responses import Response

from benchmarks.peers.encoder import BATCH, PORT, TIMEOUT, WORKERS, Encoder


class Api(litserve.LitAPI):
    def setup(self, device: str) -> None:  # noqa: ARG002  # LitServe passes it
        self.encoder = Encoder()

    def decode_request(self, request: dict[str, Any]) -> str:
        return str(request["inputs"])

    def predict(self, x: list[str]) -> npt.NDArray[np.float32]:
        return self.encoder(x)

    def encode_response(self, output: npt.NDArray[np.float32]) -> Response:
        answer = orjson.dumps(output[None], option=orjson.OPT_SERIALIZE_NUMPY)
        return Response(answer, media_type="application/json")


if __name__ == "__main__":
    api = Api(max_batch_size=BATCH, batch_timeout=TIMEOUT, api_path="/embed")
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=WORKERS)
    server.run(host="127.0.0.1", port=PORT, log_level="warning", generate_client_file=False)
