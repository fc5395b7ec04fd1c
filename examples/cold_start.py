"""A function's handler, as of AWS Lambda: the first event loads the model, later ones take milliseconds."""

import time
from functools import cache

import heedful
from heedful.library.model import Model


@cache
def model() -> Model:
    return heedful.load("ms-san-sentiment", threads=1)


def handler(event: dict[str, str], context: object = None) -> dict[str, str]:
    return {"label": model().predict([event["text"]])[0]}


for text in ("What a wonderful day", "It broke after an hour"):
    start = time.perf_counter()
    answer = handler({"text": text})
    print(f"{answer['label']} after {1000 * (time.perf_counter() - start):.0f} ms")
