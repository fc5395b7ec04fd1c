"""`python -m tools trust`, for real, on a bundle that nobody trained; attention that is replaced, against numpy."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from heedful.cli.errors import CommandError
from heedful.export.bundle import export_bundle
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ParserCard
from heedful.text.arrays import Floats
from heedful.text.graph import open_session
from heedful.text.structure import check_heads
from heedful.training.tasks import get
from tests.builders import BuiltParser
from tests.export.trained import WORDS, trained
from tools import trust
from tools.attention_controls import Control, controlled
from tools.control_scores import random_tree, right_branching
from tools.local_model import open_folder
from tools.scoring import measure
from tools.trust_page import BEGIN, END, write_page

CONTROLS = (
    *("uniform attention", "permuted attention", "random attention"),
    *("random trees", "right-branching trees"),
    *("without direction", "without word", "without dependency"),
)


@pytest.fixture
def stsb(tmp_path: Path) -> Path:
    """A data folder with STS-B in it, as its readers know it: 30 pairs a split."""
    folder = tmp_path / "data"
    (folder / "stsb").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for split in ("dev", "test"):
        sides = [[f"word{i}" for i in rng.integers(0, WORDS - 2, 9)] for _ in range(60)]
        texts = [" ".join(one[: 1 + i % 9]) for i, one in enumerate(sides)]
        rows = [{"a": texts[i], "b": texts[-1 - i], "score": i / 6} for i in range(30)]
        (folder / "stsb" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_a_bundle_is_measured_and_its_card_says_so(
    pipeline: BuiltParser, stsb: Path, tmp_path: Path
) -> None:
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    folder = tmp_path / "ms-san-toy"
    export_bundle(replace(trained("relatedness"), task="stsb", parser=parser), folder)
    name = str(pipeline.folder)
    before = read(folder).card
    out = tmp_path / "measured" / "ms-san-toy"
    card = trust.measure(folder, out, name, data=stsb, rows=30, curves=5, gradients=6)
    found = card.trust
    assert found is not None
    assert tuple(one.name for one in found.controls) == CONTROLS
    assert (found.dataset, found.metric, found.rows) == ("stsb", "pearson", 30)
    with open_folder(folder, name) as model:  # the unchanged model's score is the plain one
        plain, *_ = measure(get("stsb"), "dev", stsb, model)
    assert found.value == pytest.approx(plain.value, abs=1e-5)
    assert len({round(one.value, 6) for one in found.controls} | {found.value}) > 5
    assert 0 < found.sentences <= 5
    assert all(0 <= one <= 1 for one in (found.attention, found.evidence, found.random, found.wins))
    gradients = found.gradients
    assert gradients is not None
    assert gradients.sentences <= 6
    assert 0 <= gradients.median <= gradients.p95
    assert read(out).card == card
    assert read(folder).card == before

    page = tmp_path / "trust.md"
    page.write_text(f"before\n{BEGIN}\nSTALE\n{END}\nafter\n")
    write_page(page, [card, before.model_copy(update={"trust": None, "name": "other"})])
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "STALE" not in text
    assert "- `other`: not measured." in text
    for control in found.controls:
        assert f"| {control.name} | stsb, 30 rows | pearson | {control.value:.3f} |" in text
    assert f"| {gradients.median:.1%} | {gradients.p95:.1%} | {gradients.complete:.0%} |" in text
    page.write_text("no marks")
    with pytest.raises(CommandError, match="does not hold the lines"):
        write_page(page, [card])


def test_random_trees_have_one_root_and_every_token() -> None:
    rng = np.random.default_rng(0)
    for length in (1, 2, 7):
        heads = random_tree(rng, length)
        check_heads(heads)
        assert (heads == np.arange(length)).sum() == 1
    assert right_branching(4).tolist() == [0, 0, 1, 2]


ALLOWED = np.array(
    [[[True, True, True, False], [True, False, False, False], [True, True, True, True]]]
)


def graph(axis: int, operator: str = "Softmax") -> bytes:
    shape = ("B", "Q", "K")
    nodes = [helper.make_node(operator, ["logits"], ["weights"], axis=axis)]
    nodes.append(helper.make_node("Identity", ["weights"], ["out"]))
    logits, out = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("logits", "out")
    )
    made = helper.make_graph(nodes, "attention", [logits], [out])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


def run(content: bytes, logits: Floats) -> npt.NDArray[Any]:
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    return np.asarray(open_session(content).run(None, {"logits": logits})[0])


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("control", ["uniform", "permuted", "random"])
def test_weights_are_replaced_among_the_allowed_tokens(control: Control, axis: int) -> None:
    rng = np.random.default_rng(0)
    allowed = ALLOWED if axis == -1 else ALLOWED.swapaxes(1, 2)
    logits = np.where(allowed, rng.normal(size=allowed.shape), -np.inf).astype(np.float32)
    trained = run(graph(axis), logits)
    content = controlled(graph(axis), control)
    found = run(content, logits)
    np.testing.assert_array_equal(found > 0, allowed)
    np.testing.assert_allclose(found.sum(axis), 1, atol=1e-6)
    if control == "uniform":
        counts = allowed.sum(axis, keepdims=True)
        np.testing.assert_allclose(found, allowed / counts, atol=1e-6)
    elif control == "permuted":
        np.testing.assert_array_equal(np.sort(found, axis), np.sort(trained, axis))
        many = rng.normal(size=(1, 50, 50)).astype(np.float32)
        assert (run(content, many) != run(graph(axis), many)).mean() > 0.9
    else:
        assert not np.allclose(found, trained, atol=1e-3)
        np.testing.assert_array_equal(run(content, logits), found)  # fixed


def test_a_graph_without_attention_is_refused() -> None:
    with pytest.raises(ExportError, match="holds no softmax"):
        controlled(graph(-1, "LogSoftmax"), "uniform")
