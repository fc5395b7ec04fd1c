"""export_bundle: what the card says, what is refused, and that nothing half-written is left."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from heedful.export.bundle import export_bundle
from heedful.export.errors import ExportError, ParityError
from heedful.export.parity import TOLERANCE
from heedful.models.heads import RelatednessHead
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.errors import BundleError
from heedful.text.vocab import Vocab
from tests.export.trained import DIM, LABELS, MAX_TOKENS, trained


def snapshot(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_card_says_what_was_exported(nli: Bundle) -> None:
    card = nli.card
    assert (card.name, card.kind, card.labels) == ("ms-san-nli", "nli", LABELS["nli"])
    assert (card.dimension, card.max_tokens, card.alpha) == (2 * DIM, MAX_TOKENS, 0.5)
    assert (card.tree, card.cost) == (True, "quadratic")
    assert card.encoder.name == "ms-san"
    parameters = trained("nli").model.encoder.parameters()
    assert card.encoder.parameters == sum(parameter.numel() for parameter in parameters)
    assert card.parity.max_abs_error <= 1e-5 < card.parity.tolerance == TOLERANCE
    before = trained("nli").vocab
    assert isinstance(nli.vocab, Vocab)
    assert isinstance(before, Vocab)
    assert nli.vocab.words == before.words


def test_the_trained_model_is_left_as_it_was(tmp_path: Path) -> None:
    start = trained("embedding", average=True)
    before = copy.deepcopy(start.model.state_dict())
    export_bundle(start, tmp_path / "ms-san-toy")
    after = start.model.state_dict()
    assert start.model.training
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert sorted(snapshot(tmp_path)) == [
        f"ms-san-toy/{file}" for file in ("card.json", "encoder.onnx", "explain.onnx", "vocab.txt")
    ]


class OnlyRightInTorch(nn.Module):
    """A head whose exported graph adds one to every logit."""

    def forward(self, sentence: Tensor) -> Tensor:
        return sentence[:, :2] + (1.0 if torch.compiler.is_exporting() else 0.0)


def test_a_graph_that_differs_leaves_the_bundle_that_was_there(plain: Bundle) -> None:
    models = plain.folder.parent
    before = snapshot(models)
    wrong = trained("classification", average=True, head=OnlyRightInTorch())
    with pytest.raises(ParityError, match=r"the head graph is 1\.0e\+00 away from torch on "):
        export_bundle(wrong, plain.folder)
    assert snapshot(models) == before


def test_what_the_runtime_would_refuse_is_not_put_in_place(plain: Bundle) -> None:
    models = plain.folder.parent
    before = snapshot(models)
    start = trained("classification", average=True)
    with pytest.raises(BundleError, match=r"head\.onnx: gives \(1, 2\), the card says \(1, 3\)"):
        export_bundle(replace(start, labels=("one", "two", "three")), plain.folder)
    assert snapshot(models) == before


def test_a_bundle_is_replaced_by_a_later_one(tmp_path: Path) -> None:
    start = trained("embedding", average=True)
    first = export_bundle(start, tmp_path / "ms-san-toy")
    same = export_bundle(start, tmp_path / "ms-san-toy")
    with torch.no_grad():
        next(iter(start.model.parameters())).mul_(2)
    second = export_bundle(start, tmp_path / "ms-san-toy")
    assert same.version == first.version  # the same weights give the same files
    assert second.version != first.version
    assert read(tmp_path / "ms-san-toy").card == second
    assert [path.name for path in tmp_path.iterdir()] == ["ms-san-toy"]


def test_kind_and_head_must_agree(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="a model of kind nli has a head"):
        export_bundle(replace(trained("nli"), head=None), tmp_path / "x")
    with pytest.raises(ExportError, match="a model of kind embedding has no head"):
        export_bundle(trained("embedding", head=nn.Linear(2 * DIM, 2)), tmp_path / "x")


def test_weights_that_float16_cannot_hold_are_refused_by_name(tmp_path: Path) -> None:
    start = trained("nli")
    with torch.no_grad():
        start.model.encoder.get_parameter("attention.key.weight")[0, 0] = 1e5
    with pytest.raises(ExportError, match=r"encoder\.attention\.key\.weight is beyond float16"):
        export_bundle(start, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_relatedness_has_five_scores_and_no_labels(tmp_path: Path) -> None:
    start = trained("relatedness", average=True)
    card = export_bundle(start, tmp_path / "ms-san-related")
    assert (card.kind, card.labels) == ("relatedness", ())
    assert card.parity.max_abs_error <= TOLERANCE
    session = onnxruntime.InferenceSession(
        tmp_path / "ms-san-related/head.onnx", providers=["CPUExecutionProvider"]
    )
    sides = torch.randn(2, 3, 2 * DIM)
    (logits,) = session.run(None, {"first": sides[0].numpy(), "second": sides[1].numpy()})
    assert start.head is not None
    expected = start.head.eval()(*sides).detach()
    np.testing.assert_allclose(logits, expected, atol=1e-2)  # the weights are rounded
    four = replace(start, head=RelatednessHead(2 * DIM, hidden=4))
    assert isinstance(four.head, RelatednessHead)
    four.head.layers[-1] = nn.Linear(4, 4)
    with pytest.raises(BundleError, match=r"head\.onnx: gives \(1, 4\), the card says \(1, 5\)"):
        export_bundle(four, tmp_path / "x")
