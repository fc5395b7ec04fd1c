"""export_bundle: what the card says and the files store, what is refused, and that nothing half-written is left."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from heedful.export.bundle import export_bundle
from heedful.export.bundle_writer import write
from heedful.export.errors import ExportError, ParityError
from heedful.export.onnx import encoder_graph
from heedful.export.parity import TOLERANCE
from heedful.models.registry import build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.errors import BundleError
from heedful.text.graph import open_session
from tests.export.trained import DIM, LABELS, MAX_TOKENS, WORDS, trained


def snapshot(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_card_says_what_was_exported(nli: Bundle, plain: Bundle) -> None:
    card, start = nli.card, trained("nli")
    assert (card.name, card.kind, card.labels) == ("ms-san-nli", "nli", LABELS["nli"])
    assert (card.dimension, card.max_tokens, card.alpha) == (2 * DIM, MAX_TOKENS, 0.5)
    assert (card.tree, card.cost, card.encoder.name) == (True, "quadratic", "ms-san")
    assert card.encoder.parameters == sum(one.numel() for one in start.model.encoder.parameters())
    assert card.parity.max_abs_error <= 1e-5 < card.parity.tolerance == TOLERANCE
    # A graph without distances asks for neither tree nor alpha.
    feeds = {"ids": np.ones((2, 9), np.int64), "lengths": np.array([4, 9])}
    (vectors,) = open_session(plain.files[ENCODER]).run(None, feeds)
    assert vectors.shape == (2, plain.card.dimension)
    assert (plain.card.tree, plain.card.alpha) == (False, None)


def test_weights_are_stored_small_and_say_nothing_of_the_machine(nli: Bundle) -> None:
    graph = onnx.load_from_string(nli.files[ENCODER]).graph
    matrices = {one.name: one for one in graph.initializer if len(one.dims) == 2}
    kinds = {name: one.data_type for name, one in matrices.items()}
    by_shape = {tuple(one.dims): name for name, one in matrices.items()}
    assert kinds.pop(by_shape[WORDS, nli.card.dimension // 2]) == onnx.TensorProto.INT8
    assert kinds.pop(by_shape[WORDS, 1]) == onnx.TensorProto.FLOAT
    assert len(kinds) == 12  # four projections, four of the gate, two feed-forward layers
    assert set(kinds.values()) == {onnx.TensorProto.FLOAT16}
    for content in (*nli.files.values(), nli.card.model_dump_json().encode()):
        assert b".py" not in content
        assert str(Path.cwd()).encode() not in content


def test_the_trained_model_is_left_as_it_was_and_its_bundle_is_replaced_by_a_later_one(
    tmp_path: Path,
) -> None:
    start = trained("embedding", average=True)
    before, out = copy.deepcopy(start.model.state_dict()), tmp_path / "ms-san-toy"
    first = export_bundle(start, out)
    after = start.model.state_dict()
    assert start.model.training
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    files = ("card.json", "encoder.onnx", "explain.onnx", "vocab.txt")
    assert sorted(snapshot(tmp_path)) == [f"ms-san-toy/{file}" for file in files]
    assert export_bundle(start, out).version == first.version  # the same weights, the same files
    with torch.no_grad():
        next(iter(start.model.parameters())).mul_(2)
    second = export_bundle(start, out)
    assert second.version != first.version
    assert read(out).card == second
    assert [path.name for path in tmp_path.iterdir()] == ["ms-san-toy"]


class OnlyRightInTorch(nn.Module):
    """A head whose exported graph adds one to every logit."""

    def forward(self, sentence: Tensor) -> Tensor:
        return sentence[:, :2] + (1.0 if torch.compiler.is_exporting() else 0.0)


def test_what_is_wrong_leaves_the_bundle_that_was_there(plain: Bundle, tmp_path: Path) -> None:
    """A graph that differs, and what the runtime would refuse."""
    out = tmp_path / plain.card.name
    write(out, plain.card.fields(), plain.files)
    before = snapshot(tmp_path)
    wrong = trained("classification", average=True, head=OnlyRightInTorch())
    with pytest.raises(ParityError, match=r"the head graph is 1\.0e\+00 away from torch on "):
        export_bundle(wrong, out)
    three = replace(trained("classification", average=True), labels=("one", "two", "three"))
    with pytest.raises(BundleError, match=r"head\.onnx: gives \(1, 2\), the card says \(1, 3\)"):
        export_bundle(three, out)
    assert snapshot(tmp_path) == before


def test_what_cannot_be_exported_is_refused_by_name(tmp_path: Path) -> None:
    start = trained("nli")
    with pytest.raises(ExportError, match="a model of kind nli has a head"):
        export_bundle(replace(start, head=None), tmp_path / "x")
    with pytest.raises(ExportError, match="a model of kind embedding has no head"):
        export_bundle(trained("embedding", head=nn.Linear(2 * DIM, 2)), tmp_path / "x")
    with torch.no_grad():
        start.model.encoder.get_parameter("attention.key.weight")[0, 0] = 1e5
    with pytest.raises(ExportError, match=r"encoder\.attention\.key\.weight is beyond float16"):
        export_bundle(start, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_relatedness_has_five_scores_and_no_labels(tmp_path: Path) -> None:
    start = trained("relatedness", average=True)
    card = export_bundle(start, tmp_path / "ms-san-related")  # or ParityError
    assert (card.kind, card.labels) == ("relatedness", ())
    session = open_session((tmp_path / "ms-san-related/head.onnx").read_bytes())
    side = np.ones((3, DIM), np.float32)
    assert session.run(None, {"first": side, "second": side})[0].shape == (3, 5)


def test_disan_holds_no_weight_per_pair_and_feature() -> None:
    """No tensor outside its two loops over the reference token has B*L*L*D values."""
    torch.manual_seed(0)
    table = word_table(torch.randn(WORDS, DIM), frozen=True)
    model = SentenceEncoder(table, build("disan", {"dim": DIM}))
    graph = onnx.load_from_string(encoder_graph(model.eval()))
    assert [node.op_type for node in graph.graph.node].count("Scan") == 2
    B, L = 4, 10
    inner = {node.output[0] for node in graph.graph.node if node.output[0]}
    for name in inner - {output.name for output in graph.graph.output}:
        graph.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    feeds = {"ids": np.ones((B, L), np.int64), "lengths": np.full(B, L)}
    sizes = [np.asarray(value).size for value in session.run(None, feeds)]
    assert max(sizes) < B * L * L * DIM
