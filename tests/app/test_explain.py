"""/explain over HTTP, and trees instead of texts."""

from typing import Any

import httpx
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer
from heedful.app.schemas.response_bodies import Token
from heedful.runtime.explain.serialize import TOKEN_FIELDS

pytestmark = pytest.mark.anyio

KIDS = "Two kids at a ballgame wash  their hands."
PAIR = {"premise": KIDS, "hypothesis": "Kids wash."}


async def explain(client: httpx.AsyncClient, inputs: Any, **fields: Any) -> Any:
    answer = await client.post("/explain", json={"inputs": inputs, **fields})
    assert answer.status_code == 200, answer.text
    ExplainAnswer.model_validate(answer.json())
    return answer.json()


async def error(client: httpx.AsyncClient, route: str, **body: Any) -> tuple[int, str, str]:
    answer = await client.post(route, json=body)
    fields = answer.json()["error"]
    assert answer.status_code in (404, 413, 422), answer.text
    return answer.status_code, fields["param"], fields["code"]


def test_the_document_lists_a_tokens_fields() -> None:
    assert tuple(Token.model_fields) == TOKEN_FIELDS


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


WORDS = [{"text": "a"}, {"text": "dog"}]
ARC = {"start": 0, "end": 1, "label": "det", "dir": "left"}


@pytest.mark.parametrize(
    ("inputs", "param"),
    [
        (3, "inputs"),
        ({}, "inputs"),
        (["a"], "inputs"),
        ({"premise": "a"}, "inputs.hypothesis"),
        ({"premise": "a", "hypothesis": 3}, "inputs.hypothesis"),
        ({"premise": "a", "hypothesis": " "}, "inputs.hypothesis"),
        (" ", "inputs"),
        ({"displacy": 3}, "inputs.displacy"),
        ({"displacy": {"words": [], "arcs": []}}, "inputs.displacy.words"),
        ({"displacy": {"words": [{"text": "a b"}], "arcs": []}}, "inputs.displacy"),
        ({"displacy": {"words": [{"text": "\u0000"}], "arcs": []}}, "inputs"),
        ({"displacy": {"words": WORDS, "arcs": [{**ARC, "end": 2}]}}, "inputs.displacy"),
        ({"displacy": {"words": WORDS, "arcs": [ARC, ARC]}}, "inputs.displacy"),
        (
            {"displacy": {"words": WORDS, "arcs": [ARC, {**ARC, "dir": "right"}]}},
            "inputs.displacy",
        ),
        (
            {"displacy": {"words": WORDS, "arcs": [{**ARC, "dir": "up"}]}},
            "inputs.displacy.arcs[0].dir",
        ),
        ({"conllu": "1\tdog"}, "inputs.conllu"),
        ({"conllu": ""}, "inputs.conllu"),
        ({"conllu": "x", "displacy": {}}, "inputs.displacy.words"),
    ],
)
async def test_inputs_that_are_none_are_refused(
    client: httpx.AsyncClient, inputs: Any, param: str
) -> None:
    status, found, _ = await error(client, "/explain", inputs=inputs)
    assert (status, found) == (422, param)


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"priors": {"word": False}}, "priors.word", "unknown_prior"),
        ({"priors": {"tree": False}}, "priors.tree", "unknown_field"),
        ({"priors": {"alpha": -1}}, "priors.alpha", "invalid_value"),
        ({"priors": {"dependency": 1}}, "priors.dependency", "invalid_type"),
        ({"curves": True}, "curves", "unknown_field"),
        ({"model": "tiny-flat"}, "model", "no_explanation"),
    ],
)
async def test_fields_that_do_not_fit_are_refused(
    client: httpx.AsyncClient, fields: Any, param: str, code: str
) -> None:
    assert await error(client, "/explain", inputs=KIDS, **fields) == (422, param, code)


async def test_a_long_text_is_cut_only_with_leave(client: httpx.AsyncClient) -> None:
    text = "dog " * 17
    assert (await error(client, "/explain", inputs=text))[1:] == ("inputs", "input_too_long")
    answer = await client.post("/explain", json={"inputs": text, "truncate": True})
    assert len(answer.json()["sentences"][0]["tokens"]) == 16
    assert answer.headers["X-Truncated"] == "1"


async def test_a_tree_in_a_list_is_named_by_its_place(client: httpx.AsyncClient) -> None:
    tree = {"displacy": {"words": WORDS, "arcs": [ARC, ARC]}}
    assert (await error(client, "/embed", inputs=["a", tree]))[1] == "inputs[1].displacy"
    pairs = [{"premise": "a", "hypothesis": tree}]
    assert (await error(client, "/nli", pairs=pairs))[1] == "pairs[0].hypothesis.displacy"
