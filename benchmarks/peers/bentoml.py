"""BentoML with its adaptive batching. Vectors are returned as text written by orjson: BentoML's own JSON is slower."""

import bentoml
import orjson

from benchmarks.peers.encoder import BATCH, WORKERS, Encoder


@bentoml.service(workers=WORKERS)
class Embedder:
    def __init__(self) -> None:
        self.encoder = Encoder()

    @bentoml.api(route="/embed", batchable=True, max_batch_size=BATCH, max_latency_ms=10_000)
    def embed(self, inputs: list[str]) -> list[str]:
        vectors = self.encoder(inputs)
        return [orjson.dumps(v, option=orjson.OPT_SERIALIZE_NUMPY).decode() for v in vectors]
