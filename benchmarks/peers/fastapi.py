"""The obvious first service: FastAPI with a synchronous route that runs the session."""

import orjson
import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

from benchmarks.peers.encoder import PORT, WORKERS, Encoder

app = FastAPI()
encoder = Encoder()


class Body(BaseModel):
    inputs: str


@app.post("/embed")
def embed(body: Body) -> Response:
    answer = orjson.dumps(encoder([body.inputs]), option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(answer, media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(
        "benchmarks.peers.fastapi:app",
        port=PORT,
        workers=WORKERS,
        access_log=False,
        log_level="warning",
    )
