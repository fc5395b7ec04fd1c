"""`python -m tools trust`, for real, on a shipped bundle; attention that is replaced, against numpy."""

from pathlib import Path

import numpy as np
import pytest

from heedful.runtime.bundles.bundle import read
from heedful.text.arrays import Floats
from heedful.text.graph import open_session
from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks import get
from tests.graphs import graph
from tests.shipped import BUNDLES
from tests.writing import lines, write
from tools import trust
from tools.attention_controls import Control, controlled
from tools.local_model import open_folder
from tools.scoring import measure
from tools.trust_page import BEGIN, END, write_page

CONTROLS = (
    *("uniform attention", "permuted attention", "random attention"),
    *("random trees", "right-branching trees"),
    *("without direction", "without word", "without dependency"),
)
WORDS = ("two", "kids", "wash", "a", "dog", "plays", "not", "near", "the", "big", "house")


def test_a_bundle_is_measured_and_its_card_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 2 + i % 9)) for i in range(120)]
    rows = [
        {"premise": texts[i], "hypothesis": texts[-1 - i], "label": NLI_LABELS[i % 3]}
        for i in range(60)
    ]
    write(tmp_path, {"snli/dev.jsonl": lines(*rows)})
    folder, out, parser = BUNDLES / "ms-san-nli", tmp_path / "toy", str(BUNDLES / "parser")
    card = trust.measure(folder, out, parser, data=tmp_path, rows=60, curves=5, gradients=6)
    found = card.trust
    assert found is not None
    assert read(out).card == card
    assert tuple(one.name for one in found.controls) == CONTROLS
    with open_folder(folder, parser) as model:  # the unchanged model's score is the plain one
        plain, *_ = measure(get("nli"), "dev", tmp_path, model)
    assert (found.metric, found.rows) == (plain.metric, 60)
    assert found.value == pytest.approx(plain.value, abs=0.04)  # it was served in int8
    assert len({round(one.value, 6) for one in found.controls} | {found.value}) > 3
    assert all(0 <= one <= 1 for one in (found.attention, found.evidence, found.random, found.wins))
    gradients = found.gradients
    assert gradients is not None
    assert 0 <= gradients.median <= gradients.p95

    page = tmp_path / "trust.md"
    page.write_text(f"before\n{BEGIN}\nSTALE\n{END}\nafter\n")
    write_page(page, [card, card.model_copy(update={"trust": None, "name": "other"})])
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "STALE" not in text
    assert "- `other`: not measured." in text
    assert f", 60 rows | accuracy | {found.controls[3].value:.3f} |" in text
    assert f"| {gradients.median:.1%} | {gradients.p95:.1%} | {gradients.complete:.0%} |" in text


ALLOWED = np.array([[[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]], bool)


def run(content: bytes, logits: Floats) -> Floats:
    return np.asarray(open_session(content).run(None, {"logits": logits})[0], np.float32)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("control", ["uniform", "permuted", "random"])
def test_weights_are_replaced_among_the_allowed_tokens(control: Control, axis: int) -> None:
    body = f"weights = Softmax <axis: int = {axis}> (logits)\nout = Identity (weights)"
    plain = graph("float[B, Q, K] logits", "float[B, Q, K] out", body, {})
    rng = np.random.default_rng(0)
    allowed = ALLOWED if axis == -1 else ALLOWED.swapaxes(1, 2)
    logits = np.where(allowed, rng.normal(size=allowed.shape), -np.inf).astype(np.float32)
    trained, content = run(plain, logits), controlled(plain, control)
    found = run(content, logits)
    np.testing.assert_array_equal(found > 0, allowed)
    np.testing.assert_allclose(found.sum(axis), 1, atol=1e-6)
    if control == "uniform":
        counts = allowed.sum(axis, keepdims=True)
        np.testing.assert_allclose(found, allowed / counts, atol=1e-6)
    elif control == "permuted":
        np.testing.assert_array_equal(np.sort(found, axis), np.sort(trained, axis))
        many = rng.normal(size=(1, 50, 50)).astype(np.float32)
        assert (run(content, many) != run(plain, many)).mean() > 0.9
    else:
        assert not np.allclose(found, trained, atol=1e-3)
        np.testing.assert_array_equal(run(content, logits), found)  # fixed
