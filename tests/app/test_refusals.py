"""Refusals of each route: status, code and the named field, as the request spells it."""

import json

import httpx
import pytest

from tests.app.bodies import INFER, bodies, path_of
from tests.app.posting import JSON, Client, check, error_of

pytestmark = pytest.mark.anyio

REFUSED = r"""
422 /classify unknown_field colour {"inputs": "a", "colour": 1}
422 /classify invalid_value labels {"inputs": "kids", "labels": []}
422 /classify invalid_type labels {"inputs": "kids", "labels": "kids, dog"}
422 /classify invalid_input labels[1] {"inputs": "kids", "labels": ["kids", " "]}
422 /classify invalid_value labels[2] {"inputs": "kids", "labels": ["kids", "dog", "Kids "]}
422 /classify input_too_long labels[1] {"inputs": "kids", "labels": ["kids", "LONG"]}
422 /classify invalid_value hypothesis_template {"inputs": "kids", "labels": LABELS, "hypothesis_template": "about"}
422 /classify invalid_value hypothesis_template {"inputs": "kids", "labels": LABELS, "hypothesis_template": "{}{}"}
422 /classify invalid_input hypothesis_template {"inputs": "kids", "labels": LABELS, "hypothesis_template": ""}
422 /classify wrong_task model {"inputs": "kids", "labels": LABELS, "model": "tiny-sst2"}
422 /classify unsupported hypothesis_template {"inputs": "kids", "hypothesis_template": "about {}"}
422 /classify unsupported multi_label {"inputs": "kids", "multi_label": false}
422 /classify unsupported labels {"inputs": "kids", "labels": LABELS, "parameters": {"candidate_labels": LABELS}}
422 /classify unsupported parameters.multi_label {"inputs":"kids","labels":LABELS,"parameters":{"multi_label":true}}
422 /classify unsupported parameters.function_to_apply {"inputs":"a","labels":LABELS,RAW}
422 /classify invalid_value parameters.candidate_labels[1] {"inputs":"a","parameters":{"candidate_labels":["b","b"]}}
422 /classify unsupported parameters.hypothesis_template {"inputs": "a", "parameters": {"hypothesis_template": "{}"}}
422 /classify unsupported parameters.aggregation_strategy {"inputs": "a", "parameters": {"aggregation_strategy":"max"}}
422 /predict unsupported parameters.stride {"inputs": "a", "parameters": {"stride": 3}}
422 / unsupported parameters.targets {"inputs": "a", "parameters": {"targets": ["kids"]}}
422 /embed invalid_type inputs[1] {"inputs": ["a", 3]}
422 /embed invalid_value dimensions {"inputs": "a", "dimensions": 0}
422 /embed unsupported long {"inputs": "a", "long": "mean", "truncate": true}
422 /embed unsupported prompt_name {"inputs": "a", "prompt_name": "query"}
422 /embed unsupported truncation_direction {"inputs": "a", "truncation_direction": "Left", "truncate": true}
422 /embed invalid_input inputs[1].displacy {"inputs": ["a", TWICE]}
422 /embed unsupported inputs {"inputs": [[1, 2], [3]]}
404 /embed model_not_found model {"inputs": "a", "model": "\ud800"}
422 /explain invalid_type inputs {"inputs": ["a"]}
422 /explain invalid_input inputs.displacy {"inputs": {"displacy": {"words": [{"text": "a b"}], "arcs": []}}}
422 /explain invalid_input inputs {"inputs": {"displacy": {"words": [{"text": "\u0000"}], "arcs": []}}}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{"start": 0, "end": 2, "label": "det", LEFT}]}}}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{DET, LEFT}, {DET, "dir": "right"}]}}}
422 /explain invalid_value inputs.displacy.arcs[0].dir {"inputs": {TREE: [{DET, "dir": "up"}]}}}
422 /explain invalid_input inputs.conllu {"inputs": {"conllu": "1\tdog"}}
422 /explain missing_field inputs.displacy.words {"inputs": {"conllu": "x", "displacy": {}}}
422 /explain unknown_prior priors.word {"inputs": "a dog", "priors": {"word": false}}
422 /explain no_explanation model {"inputs": "a dog", "model": "tiny-flat"}
422 /explain missing_field inputs.b {"inputs": {"a": "x"}}
422 /explain invalid_value inputs.b.conllu {"inputs": {"a": "x", "b": {"conllu": ""}}}
422 /explain unknown_field inputs.a {"inputs": {"a": "x", "b": "y", "premise": "z", "hypothesis": "w"}}
422 /explain wrong_task model {"inputs": {"a": "x", "b": "y"}, "model": "tiny-sst2"}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{FROM "label": "a\tb", LEFT}]}}}
422 /nli missing_field hypothesis {"premise": "a"}
422 /nli invalid_input pairs[0].hypothesis.displacy {"pairs": [{"premise": "a", "hypothesis": TWICE}]}
422 /predict invalid_value inputs[0] {"inputs": [[]]}
422 /predict invalid_value inputs {"inputs": ["a", "b", "c"]}
422 /predict invalid_value inputs[1] {"inputs": [["a"], ["a", "b", "c"]]}
422 /predict invalid_type inputs[1] {"inputs": [["a"], "b"]}
422 /predict unsupported inputs {"inputs": [["a"], ["b", "c"]]}
422 /predict wrong_task model {"inputs": ["a", "b"], "model": "tiny-sst2"}
422 /predict wrong_task model {"inputs": "a", "model": "tiny-nli"}
422 /relatedness unknown_field pairs[0].c {"pairs": [{"a": "x", "b": "y", "c": "z"}]}
422 /rerank invalid_input query {"query": "", "texts": ["a"]}
422 /rerank invalid_input documents[0] {"query": "kids", "documents": [""]}
422 /similarity invalid_input inputs.source_sentence {"inputs": {"source_sentence": "", "sentences": ["a"]}}
422 /similarity unsupported parameters.prompt_name {"inputs":TEXTS,"parameters":{"prompt_name":"query"}}
422 /v1/embeddings invalid_value encoding_format {"input":"a","model":"tiny-flat","encoding_format":"int8"}
422 /v1/rerank missing_field documents[1].text {"query": "a", "documents": ["a", {"title": "b"}]}
422 /v1/rerank unsupported rank_fields {"query": "a", "documents": ["a"], "rank_fields": ["title", "text"]}
422 /v1/rerank unsupported max_tokens_per_doc {"query": "a", "documents": ["a"], "max_tokens_per_doc": 1}
422 /v1/rerank invalid_input documents[0] {"query":"a","documents":[{"text":"b","id":"\ud800"}],"return_documents":true}
422 INFER invalid_input id {"id": "\ud800", "inputs": [TENSOR]}
422 INFER invalid_input inputs {"inputs": []}
422 INFER invalid_type inputs[0].data {"inputs": [{NAMED "shape": [1], "data": [3]}]}
422 INFER invalid_input inputs[1].name {"inputs": [TENSOR, {NAMED "shape": [1], "data": ["b"]}]}
422 INFER invalid_input inputs[0].name {"inputs": [{"name": "junk", CODED "shape": [1], "data": ["a"]}, TENSOR]}
422 INFER invalid_input inputs[0].shape {"inputs": [{NAMED "shape": [2], "data": ["a"]}]}
422 INFER invalid_input inputs[0].shape {"inputs": [{NAMED "shape": [1, 0], "data": ["a"]}]}
422 INFER invalid_value inputs[0].shape {"inputs": [{NAMED "shape": DEEP, "data": ["a"]}]}
422 INFER invalid_input outputs[0].name {"inputs": [TENSOR], "outputs": [{"name": "logits"}]}
422 INFER unsupported outputs[0].parameters.classification {"inputs": [TENSOR], "outputs": RANKED}
422 INFER unsupported parameters.long {"inputs": [TENSOR], "parameters": {"truncate": true, "long": "mean"}}
422 /v2/embed invalid_value embedding_types {"model": "tiny-flat", "texts": ["a"], "embedding_types": []}
422 /v2/embed unsupported truncate {"model": "tiny-flat", "texts": ["a"], "truncate": "START"}
422 /v2/embed unsupported images {"model": "tiny-flat", "texts": ["a"], "images": ["data:image/png;base64,"]}
"""
"""Status, route, code, field (- for none) and body."""
MESSAGES = r"""
422 /nli invalid_type | the body: must be an object with premise and hypothesis, or with pairs | []
422 /rerank invalid_type | the body: must be an object with query and texts, or with query and documents | []
422 /v1/embeddings invalid_type | input: must be a string or a list of strings | {"input": 3, "model": "tiny-flat"}
422 /nli missing_field | premise: is required (sent: text1, text2) | {"text1": "a", "text2": "b"}
422 /nli unknown_field | premise: does not belong here; GET /docs lists the fields | {"premise": "a", "pairs": []}
422 /embed invalid_type | truncate: must be true or false | {"inputs": "a", "truncate": 1}
422 /embed invalid_value | dimensions is 9: the model has 8 | {"inputs": "a", "dimensions": 9, "normalize": false}
422 /embed invalid_value | WORDS: must have at most 10000 items | {"inputs": {"displacy": {"words": FOREST, ARCS}}}
422 /embed invalid_input | SPLIT: send valid Unicode | {"inputs": {TREE: [{FROM "label": "\ud800", LEFT}]}}}
413 /embed too_many_inputs | inputs holds 65, more than 64: send several requests | {"inputs": MANY}
422 /embed unsupported | inputs: token ids are not accepted, each model has its own; send the text | {"inputs": [1, 2]}
404 /embed model_not_found | there is no model 'bert'; known are: SERVED | {"inputs": "a", "model": "bert"}
422 INFER invalid_input | inputs: the model reads text, not 'words'; name a tensor text | {"inputs": [UNKNOWN]}
422 /embed input_too_long | inputs has more than 160 tokens and is TOO_LONG truncate to true | {"inputs": "HUGE"}
422 /embed input_too_long | inputs has more than WIDTH and is TOO_LONG truncate to true | {"inputs":"WIDE"}
"""
"""Status, route, code, message and body."""
CUT = "truncate to true"
FIELDS = {
    "/": ("inputs", "inputs[2]", "tiny-flat", CUT),
    "/embed": ("inputs", "inputs[2]", "tiny-flat", CUT),
    "/v1/embeddings": ("input", "input[2]", "tiny-flat", CUT),
    "/nli": ("pairs", "pairs[2].hypothesis", "tiny-nli", CUT),
    "/relatedness": ("pairs", "pairs[2].b", "tiny-related", CUT),
    "/classify": ("inputs", "inputs[2]", "tiny-sst2", CUT),
    "/predict": ("inputs", "inputs[2][1]", "tiny-nli", CUT),
    "/similarity": ("inputs.sentences", "inputs.sentences[2]", "tiny-flat", f"parameters.{CUT}"),
    "/rerank": ("texts", "texts[2]", "tiny-flat", CUT),
    "/v1/rerank": ("documents", "documents[2]", "", ""),
    "/v2/rerank": ("documents", "documents[2]", "", ""),
    "/v2/embed": ("texts", "texts[2]", "tiny-flat", "truncate to END"),
    INFER: ("inputs", "inputs.text[2]", "tiny-flat", f"parameters.{CUT}"),
    "/tokenize": ("inputs", "inputs[2]", "tiny-flat", CUT),
    "/explain": ("", "inputs", "tiny-sst2", CUT),
}
"""Route -> its list of inputs, the last of three texts, the model, and what has a long text cut."""
SHORT = {
    "INFER": INFER,
    "SPLIT": "inputs.displacy: a relation holds half of a surrogate pair",
    "TOO_LONG": "longer than tiny-flat reads (16 tokens, and WIDTH): shorten it, or set",
    "WIDTH": "500 characters without white space",
    "WORDS": "inputs.displacy.words",
    "SERVED": "tiny-flat, tiny-nli, tiny-related, tiny-sst2",
    "LONG": "kids " * 17,  # than the models read
    "HUGE": "kids " * 161,
    "WIDE": "a" * 501,
    "MANY": json.dumps(["a"] * 65),
    "FOREST": json.dumps([{"text": "a"}] * 10_001),
    "DEEP": json.dumps([1] * 33),
    "TEXTS": '{"source_sentence": "a", "sentences": ["a"]}',
    "LABELS": '["kids", "bad dog", "hands"]',
    "TENSOR": '{NAMED "shape": [1], "data": ["a"]}',
    "RANKED": '[{"name": "embedding", "parameters": {"classification": 1}}]',
    "RAW": '"parameters": {"function_to_apply": "none"}',
    "UNKNOWN": '{"name": "words", CODED "shape": [1], "data": ["a"]}',
    "NAMED": '"name": "text", CODED',
    "CODED": '"datatype": "BYTES",',
    "TWICE": "{TREE: [{DET, LEFT}, {DET, LEFT}]}}",
    "TREE": '"displacy": {"words": [{"text": "a"}, {"text": "dog"}], "arcs"',
    "ARCS": '"arcs": []',
    "DET": 'FROM "label": "det"',
    "FROM": '"start": 0, "end": 1,',
    "LEFT": '"dir": "left"',
}


def spelt(short: str) -> str:
    for name, long in SHORT.items():
        short = short.replace(name, long)
    return short


async def refused(client: Client, route: str, body: str) -> httpx.Response:
    return await client.post(path_of(spelt(route)), content=spelt(body).encode(), headers=JSON)


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
async def test_the_field_is_named(client: Client, case: str) -> None:
    status, route, code, param, body = case.split(maxsplit=4)
    answer = await refused(client, route, body)
    assert param in check(answer, int(status), code, param)["message"]


@pytest.mark.parametrize("case", MESSAGES.strip().splitlines())
async def test_the_message_says_what_to_do(client: Client, case: str) -> None:
    request, message, body = case.split(" | ")
    status, route, code = request.split()
    answer = await refused(client, route, body)
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (int(status), code)
    assert error["message"] == spelt(message)


@pytest.mark.parametrize("path", bodies(""))
async def test_every_route_names_its_list_and_the_text_that_is_refused(
    client: Client, path: str
) -> None:
    """And answers the longest text and the longest list."""
    listed, last, model, remedy = FIELDS[path]
    start, _, end = json.dumps(bodies("kids", count=3)[path]).rpartition('"kids"')
    for text in ("", " \t\n", "a\0", "\ud800", "\udfff x"):
        answer = await refused(client, path, start + json.dumps(text) + end)
        check(answer, 422, "invalid_input", last)
    too_long = await refused(client, path, f'{start}"LONG"{end}')
    assert too_long.is_success == (not remedy)
    if remedy:
        message = check(too_long, 422, "input_too_long", last)["message"]
        long = f"{last} has 17 tokens and is longer than {model} reads "
        assert message == long + spelt(f"(16 tokens, and WIDTH): shorten it, or set {remedy}")
    assert (await client.post(path_of(path), json=bodies("kids " * 16)[path])).is_success
    if listed:
        many, most, none = [bodies("kids", count=count)[path] for count in (65, 64, 0)]
        check(await client.post(path_of(path), json=many), 413, "too_many_inputs", listed)
        assert (await client.post(path_of(path), json=most)).is_success
        empty = await client.post(path_of(path), json=none)
        assert (empty.status_code, error_of(empty)["param"]) == (422, listed)
