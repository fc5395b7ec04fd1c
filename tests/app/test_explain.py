"""/explain over HTTP, trees instead of texts, and /relatedness."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer
from tests.app.posting import Client, ask

pytestmark = pytest.mark.anyio
KIDS = "Two kids at a ballgame wash  their hands."
PAIR = {"premise": KIDS, "hypothesis": "Kids wash."}
PAIRS = [
    {"a": "two kids wash their hands", "b": "the dog"},
    {"a": "bad", "b": "a man at the ballgame is not good"},
    {"a": "the dog", "b": "the dog"},
]


async def explain(client: Client, inputs: Any, **fields: Any) -> Any:
    answer = await ask(client, "/explain", inputs=inputs, **fields)
    ExplainAnswer.model_validate(answer)
    return answer


async def test_a_text_and_its_priors(client: Client) -> None:
    full = await explain(client, KIDS)
    assert (full["model"], full["priors"]) == ("tiny-sst2", {"dependency": True, "alpha": 1.5})
    assert {"similarity", "ablation"}.isdisjoint(full)
    (sentence,) = full["sentences"]
    assert sentence["text"] == KIDS
    assert [sentence["tokens"]] == await ask(client, "/tokenize", inputs=KIDS, model="tiny-sst2")
    (map_,) = sentence["maps"]
    assert (map_["name"], len(map_["weights"])) == ("products", len(sentence["tokens"]))
    np.testing.assert_allclose(np.sum(map_["weights"], axis=1), 1, atol=1e-5)
    assert [part["name"] for part in sentence["pooling"]] == ["sums", "mean"]
    assert [part["name"] for part in sentence["gate"]] == ["gate"]
    assert all(0 < weight < 1 for weight in sentence["gate"][0]["weights"])
    ranked = await ask(client, "/classify", inputs=KIDS)
    assert full["prediction"]["label"] == ranked[0]["label"]
    scores = {entry["label"]: entry["score"] for entry in ranked}
    assert full["prediction"]["scores"] == pytest.approx(scores, abs=1e-5)
    off = await explain(client, KIDS, priors={"dependency": False})
    zero = await explain(client, KIDS, priors={"alpha": 0})
    assert off["priors"] == {"dependency": False, "alpha": 1.5}
    assert zero["priors"] == {"dependency": True, "alpha": 0}
    assert off["prediction"] == zero["prediction"] != full["prediction"]


async def test_a_pair(client: Client) -> None:
    answer = await explain(client, PAIR, ablation=True)
    assert answer["model"] == "tiny-nli"
    lengths = tuple(len(sentence["tokens"]) for sentence in answer["sentences"])
    assert np.shape(answer["similarity"]) == lengths
    judged = await ask(client, "/nli", **PAIR)
    assert answer["prediction"]["label"] == judged["label"]
    assert answer["prediction"]["scores"] == pytest.approx(judged["scores"], abs=1e-5)
    (ablation,) = answer["ablation"]
    assert ablation["prior"] == "dependency"
    after = ablation["prediction"]["scores"]
    change = {label: after[label] - before for label, before in judged["scores"].items()}
    assert ablation["change"] == pytest.approx(change, abs=1e-5)
    assert ablation["flips"] == (ablation["prediction"]["label"] != judged["label"])


@pytest.mark.parametrize("shape", ["displacy", "conllu"])
async def test_an_answers_tree_may_be_sent_in_place_of_the_text(client: Client, shape: str) -> None:
    """The rebuilt text has one blank where there were two; all else is the same."""
    first = await explain(client, KIDS)
    tree = {shape: first["sentences"][0]["tree"][shape]}
    again = await explain(client, tree)
    assert again["prediction"] == first["prediction"]
    for key in ("maps", "pooling", "gate", *(["tree"] if shape == "conllu" else [])):
        # displaCy's shape does not say where blanks are.
        assert again["sentences"][0][key] == first["sentences"][0][key]
    for route in ("/embed", "/classify"):
        texts, trees = [
            await ask(client, route, inputs=[item, "A dog."], model="tiny-sst2")
            for item in (KIDS, tree)
        ]
        assert trees == texts
        alone = await ask(client, route, inputs=tree, model="tiny-sst2")
        if route == "/embed":  # another batch rounds otherwise
            assert alone == [pytest.approx(texts[0], abs=1e-6)]
        else:
            assert [row["label"] for row in alone] == [row["label"] for row in texts[0]]
            scores = [row["score"] for row in texts[0]]
            assert [row["score"] for row in alone] == pytest.approx(scores, abs=1e-6)
    text, same = [
        await ask(client, "/nli", premise=item, hypothesis="A dog.") for item in (KIDS, tree)
    ]
    assert same == text


async def test_relatedness_is_the_expectation_of_the_head(client: Client, models: Path) -> None:
    answer = await ask(client, "/relatedness", pairs=PAIRS)
    assert list(answer) == ["scores"]
    sides: dict[str, Any] = {}
    for name, side in (("first", "a"), ("second", "b")):
        texts = [pair[side] for pair in PAIRS]
        rows = await ask(client, "/embed", inputs=texts, normalize=False, model="tiny-related")
        sides[name] = np.array(rows, np.float32)
    head = onnxruntime.InferenceSession(models / "tiny-related" / "head.onnx")
    (logits,) = head.run(None, sides)
    weights = np.exp(np.float64(logits))
    expected = weights @ np.arange(1, 6) / weights.sum(axis=1)
    np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
    assert 1 <= min(answer["scores"]) < max(answer["scores"]) <= 5


async def test_relatedness_is_explained(client: Client) -> None:
    pair = PAIRS[1]
    (score,) = (await ask(client, "/relatedness", pairs=[pair]))["scores"]
    answer = await explain(client, pair, ablation=True)
    assert answer["model"] == "tiny-related"
    assert answer["relatedness"] == pytest.approx(score, abs=1e-5)
    assert "prediction" not in answer
    assert [sentence["text"] for sentence in answer["sentences"]] == [pair["a"], pair["b"]]
    assert np.shape(answer["similarity"]) == (1, 8)
    (ablation,) = answer["ablation"]
    without = (await explain(client, pair, priors={"dependency": False}))["relatedness"]
    assert ablation["relatedness"] == pytest.approx(without, abs=1e-5)
    assert ablation["change"] == {"relatedness": pytest.approx(without - score, abs=1e-5)}
    assert {"flips", "prediction"}.isdisjoint(ablation)
