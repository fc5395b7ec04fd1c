"""DiSAN's loop in blocks of reference tokens: the vectors of a loop over one after the other."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor

from heedful.export.onnx import encoder_graph, graph
from heedful.export.query_blocks import CELLS, SUMMED, in_blocks
from heedful.models.disan import attend
from heedful.models.registry import build
from heedful.models.scan import scan
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.text.arrays import Ints

DIM, WORDS = 6, 40


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def _feeds(lengths: list[int], seed: int) -> dict[str, Ints]:
    ids = np.random.default_rng(seed).integers(2, WORDS, (len(lengths), max(lengths)))
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = 0
    return {"ids": ids, "lengths": np.array(lengths)}


def _graphs(direction: bool) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """DiSAN as it is exported, and with blocks."""
    torch.manual_seed(0)
    encoder = build("disan", {"dim": DIM, "direction": direction})
    model = SentenceEncoder(word_table(torch.randn(WORDS, DIM), frozen=True), encoder).eval()
    plain = onnx.load_from_string(encoder_graph(model))
    blocked = onnx.ModelProto()
    blocked.CopyFrom(plain)
    in_blocks(blocked)
    return plain, blocked


@pytest.fixture(scope="module", params=[True, False], ids=["directions", "without"])
def graphs(request: pytest.FixtureRequest) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    return _graphs(request.param)


BATCHES = [[1], [5, 1, 2], [SUMMED, 40], [200, 33, SUMMED + 1], [CELLS + 3, 1]]
SIZES = [1, 2, 5, 40, SUMMED - 1, SUMMED, SUMMED + 1, 200, CELLS + 3]


def test_the_vectors_are_those_of_one_reference_after_the_other(
    graphs: tuple[onnx.ModelProto, onnx.ModelProto],
) -> None:
    plain, blocked = map(_session, graphs)
    for seed, (first, second) in enumerate(itertools.product(SIZES, [1, 7, 150])):
        feeds = _feeds([first, second, second], seed)
        (expected,), (found,) = plain.run(None, feeds), blocked.run(None, feeds)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


class Loop(torch.nn.Module):
    """The loop alone: products before it round differently."""

    def forward(self, queries: Tensor, allowed: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return scan(attend, [], [queries, allowed], [keys, values])[0]


def test_a_sentence_has_the_same_bits_alone_and_in_a_batch() -> None:
    """Blocks hold fewer reference tokens in a batch, and a sentence ends before others do."""
    D = 30
    rng = np.random.default_rng(0)
    axes = {"queries": {0: "L", 1: "B"}, "allowed": {0: "L", 1: "B", 3: "L"}}
    axes |= {"keys": {0: "B", 1: "L"}, "values": {0: "B", 1: "L"}}
    example = {
        "queries": torch.zeros(5, 2, 1, D),
        "allowed": torch.zeros(5, 2, 1, 5),
        "keys": torch.zeros(2, 5, D),
        "values": torch.zeros(2, 5, D),
    }
    made = onnx.load_from_string(graph(Loop(), example, axes, ["s"]))
    in_blocks(made)
    session = _session(made)
    for may_attend, lengths in itertools.product((np.less, np.greater, np.not_equal), BATCHES):
        B, L = len(lengths), max(lengths)
        queries = rng.normal(size=(L, B, 1, D)).astype(np.float32)
        keys, values = rng.normal(size=(2, B, L, D)).astype(np.float32)
        place = np.arange(L)
        allowed = may_attend(place, place[:, None])[:, None] & (place < np.array(lengths)[:, None])
        feeds = {"queries": queries, "allowed": allowed[:, :, None].astype(np.float32)}
        (together,) = session.run(None, {**feeds, "keys": keys, "values": values})
        for row, length in enumerate(lengths):
            one = {name: value[:length, row : row + 1] for name, value in feeds.items()}
            one["allowed"] = one["allowed"][..., :length]
            one |= {"keys": keys[row : row + 1, :length], "values": values[row : row + 1, :length]}
            np.testing.assert_array_equal(session.run(None, one)[0][:, 0], together[:length, row])


@pytest.mark.parametrize(("direction", "share"), [(True, 0.5), (False, 1.0)])
def test_with_a_direction_a_step_reads_half_of_the_tokens(direction: bool, share: float) -> None:
    """Judged by the ranges that the graph gives its steps."""
    _, blocked = _graphs(direction)
    loops = [node for node in blocked.graph.node if node.op_type == "Scan"]
    names = [name for loop in loops for name in loop.input[-2:]]
    blocked.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, None) for name in names
    )
    found = _session(blocked).run(names, _feeds([120], 0))
    assert len(found) == 4
    for start, stop in (found[:2], found[2:]):
        assert len(start) == 120 // (CELLS // 120)
        assert (stop - start).sum() == pytest.approx(share * 120 * len(start), rel=0.05)
