"""Ray Serve with its batching."""

import signal

import numpy as np
import numpy.typing as npt
import orjson
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from benchmarks.peers.encoder import BATCH, PORT, TIMEOUT, WORKERS, Encoder


@serve.deployment(num_replicas=WORKERS, max_ongoing_requests=256)
class Embedder:
    def __init__(self) -> None:
        self.encoder = Encoder()

    @serve.batch(max_batch_size=BATCH, batch_wait_timeout_s=TIMEOUT)
    async def encode(self, texts: list[str]) -> list[npt.NDArray[np.float32]]:
        return list(self.encoder(texts))

    async def __call__(self, request: Request) -> Response:
        body = orjson.loads(await request.body())
        vector = await self.encode(body["inputs"])
        answer = orjson.dumps(vector[None], option=orjson.OPT_SERIALIZE_NUMPY)
        return Response(answer, media_type="application/json")


if __name__ == "__main__":
    ray.init(include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    app = Embedder.bind()  # type: ignore[attr-defined]  # the decorator adds it
    serve.run(app, route_prefix="/embed")
    signal.pause()
