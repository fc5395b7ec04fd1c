"""/explain over HTTP, and trees instead of texts."""

from typing import Any

import httpx
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer

pytestmark = pytest.mark.anyio

KIDS = "Two kids at a ballgame wash  their hands."
PAIR = {"premise": KIDS, "hypothesis": "Kids wash."}


async def explain(client: httpx.AsyncClient, inputs: Any, **fields: Any) -> Any:
    answer = await client.post("/explain", json={"inputs": inputs, **fields})
    assert answer.status_code == 200, answer.text
    ExplainAnswer.model_validate(answer.json())
    return answer.json()


async def test_a_text(client: httpx.AsyncClient) -> None:
    found = await explain(client, KIDS)
    assert found["model"] == "tiny-sst2"
    assert found["priors"] == {"dependency": True, "alpha": 1.5}
    (sentence,) = found["sentences"]
    tokens = (await client.post("/tokenize", json={"inputs": KIDS, "model": "tiny-sst2"})).json()
    assert sentence["tokens"] == tokens[0]
    assert sentence["text"] == KIDS
    length = len(tokens[0])
    (map_,) = sentence["maps"]
    assert map_["name"] == "products"
    assert len(map_["weights"]) == length
    for row in map_["weights"]:
        assert sum(row) == pytest.approx(1, abs=1e-5)
    assert [one["name"] for one in sentence["pooling"]] == ["sums", "mean"]
    assert [one["name"] for one in sentence["gate"]] == ["gate"]
    assert all(0 < weight < 1 for weight in sentence["gate"][0]["weights"])
    assert {"similarity", "ablation"}.isdisjoint(found)
    ranked = (await client.post("/classify", json={"inputs": KIDS})).json()
    assert found["prediction"]["label"] == ranked[0]["label"]
    for one in ranked:
        assert found["prediction"]["scores"][one["label"]] == pytest.approx(one["score"], abs=1e-5)


async def test_a_pair(client: httpx.AsyncClient) -> None:
    found = await explain(client, PAIR, ablation=True)
    assert found["model"] == "tiny-nli"
    first, second = (len(sentence["tokens"]) for sentence in found["sentences"])
    assert [len(found["similarity"]), len(found["similarity"][0])] == [first, second]
    judged = (await client.post("/nli", json=PAIR)).json()
    assert found["prediction"]["label"] == judged["label"]
    assert found["prediction"]["scores"] == pytest.approx(judged["scores"], abs=1e-5)
    (ablation,) = found["ablation"]
    assert ablation["prior"] == "dependency"
    for label, change in ablation["change"].items():
        after, before = ablation["prediction"]["scores"][label], judged["scores"][label]
        assert change == pytest.approx(after - before, abs=1e-5)
    assert ablation["flips"] == (ablation["prediction"]["label"] != judged["label"])


async def test_priors(client: httpx.AsyncClient) -> None:
    full = await explain(client, KIDS)
    off = await explain(client, KIDS, priors={"dependency": False})
    zero = await explain(client, KIDS, priors={"alpha": 0})
    assert off["priors"] == {"dependency": False, "alpha": 1.5}
    assert zero["priors"] == {"dependency": True, "alpha": 0}
    assert off["prediction"] == zero["prediction"] != full["prediction"]


@pytest.mark.parametrize("shape", ["displacy", "conllu"])
async def test_an_answers_tree_may_be_sent_in_the_place_of_the_text(
    client: httpx.AsyncClient, shape: str
) -> None:
    """The rebuilt text has one blank where there were two; all else is the same."""
    found = await explain(client, KIDS)
    tree = {shape: found["sentences"][0]["tree"][shape]}
    again = await explain(client, tree)
    assert again["prediction"] == found["prediction"]
    for key in ("maps", "pooling", "gate", "tree"):
        if shape == "displacy" and key == "tree":
            continue  # it does not say where blanks are
        assert again["sentences"][0][key] == found["sentences"][0][key]
    for route, key in (("/embed", "inputs"), ("/classify", "inputs")):
        texts = (
            await client.post(route, json={key: [KIDS, "A dog."], "model": "tiny-sst2"})
        ).json()
        trees = (
            await client.post(route, json={key: [tree, "A dog."], "model": "tiny-sst2"})
        ).json()
        alone = (await client.post(route, json={key: tree, "model": "tiny-sst2"})).json()
        assert trees == texts
        if route == "/embed":  # another batch rounds otherwise
            assert alone == [pytest.approx(texts[0], abs=1e-6)]
        else:
            assert alone == [
                {"label": label["label"], "score": pytest.approx(label["score"], abs=1e-6)}
                for label in texts[0]
            ]
    text = (await client.post("/nli", json={"premise": KIDS, "hypothesis": "A dog."})).json()
    same = (await client.post("/nli", json={"premise": tree, "hypothesis": "A dog."})).json()
    assert same == text


async def test_another_tree_is_another_answer(client: httpx.AsyncClient) -> None:
    found = await explain(client, KIDS)
    tree = found["sentences"][0]["tree"]["displacy"]
    changed = await explain(client, {"displacy": {**tree, "arcs": []}})
    assert changed["prediction"] != found["prediction"]
    assert all(
        token["head"] == i and token["dep"] == "ROOT"
        for i, token in enumerate(changed["sentences"][0]["tokens"])
    )


async def test_a_long_text_is_cut_with_leave(client: httpx.AsyncClient) -> None:
    text = "dog " * 17
    answer = await client.post("/explain", json={"inputs": text, "truncate": True})
    assert len(answer.json()["sentences"][0]["tokens"]) == 16
    assert answer.headers["X-Truncated"] == "1"
