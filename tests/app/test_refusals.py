"""Refusals of each route: status, code and the named field, as the request spells it."""

import json

import httpx
import pytest

from tests.app.bodies import INFER, path_of
from tests.app.posting import JSON, Client, check, error_of

pytestmark = pytest.mark.anyio

REFUSED = r"""
422 /classify unknown_field colour {"inputs": "a", "colour": 1}
422 /classify invalid_value top_k {"inputs": "a", "top_k": 0}
422 /classify unknown_field normalize {"inputs": "a", "normalize": true}
422 /classify invalid_input inputs[1] {"inputs": ["a", ""]}
422 /classify invalid_value labels {"inputs": "kids", "labels": []}
422 /classify invalid_type labels {"inputs": "kids", "labels": "kids, dog"}
422 /classify invalid_type labels[1] {"inputs": "kids", "labels": ["kids", 3]}
422 /classify invalid_input labels[1] {"inputs": "kids", "labels": ["kids", " "]}
422 /classify invalid_value labels[2] {"inputs": "kids", "labels": ["kids", "dog", "Kids "]}
422 /classify input_too_long labels[1] {"inputs": "kids", "labels": ["kids", "LONG"]}
422 /classify invalid_input labels[0] {"inputs": "kids", "labels": ["kids\u0000"]}
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
422 /classify unsupported parameters.stride {"inputs": "a", "parameters": {"stride": 3}}
422 /classify unsupported parameters.generate_parameters {"inputs": "a", "parameters": {"generate_parameters": {}}}
422 /predict unsupported parameters.stride {"inputs": "a", "parameters": {"stride": 3}}
422 / unsupported parameters.targets {"inputs": "a", "parameters": {"targets": ["kids"]}}
422 / unsupported parameters.multi_label {"inputs": "a", "parameters": {"multi_label": false}}
422 /classify wrong_task model {"inputs": "a", "model": "tiny-nli"}
413 /classify too_many_inputs inputs {"inputs": MANY}
422 /embed missing_field inputs {}
422 /embed invalid_type - []
422 /embed invalid_type inputs {"inputs": 3}
422 /embed invalid_type inputs {"inputs": {"text": "a"}}
422 /embed invalid_type inputs[1] {"inputs": ["a", 3]}
422 /embed invalid_type truncate {"inputs": "a", "truncate": 1}
422 /embed invalid_type dimensions {"inputs": "a", "dimensions": "3"}
422 /embed invalid_value dimensions {"inputs": "a", "dimensions": 0}
422 /embed invalid_value long {"inputs": "a", "long": "cut"}
422 /embed unsupported long {"inputs": "a", "long": "mean", "truncate": true}
422 /embed invalid_value precision {"inputs": "a", "precision": "int4"}
422 /embed unsupported prompt_name {"inputs": "a", "prompt_name": "query"}
422 /embed unsupported truncation_direction {"inputs": "a", "truncation_direction": "Left", "truncate": true}
422 /embed invalid_input inputs {"inputs": []}
422 /embed invalid_input inputs {"inputs": ""}
422 /embed invalid_input inputs[1] {"inputs": ["a", " \t\n"]}
422 /embed invalid_input inputs[1] {"inputs": ["a", "a\u0000"]}
422 /embed invalid_input inputs {"inputs": "\ud800"}
422 /embed invalid_input inputs[2] {"inputs": ["a", "b", "\udfff x"]}
422 /embed invalid_input inputs[1].displacy {"inputs": ["a", TWICE]}
422 /embed invalid_value dimensions {"inputs": "a", "dimensions": 9}
422 /embed unsupported inputs {"inputs": [1, 2]}
422 /embed unsupported inputs {"inputs": [[1, 2], [3]]}
404 /embed model_not_found model {"inputs": "a", "model": "bert"}
404 /embed model_not_found model {"inputs": "a", "model": "\ud800"}
413 /embed too_many_inputs inputs {"inputs": MANY}
422 /explain invalid_type inputs {"inputs": 3}
422 /explain invalid_type inputs {"inputs": ["a"]}
422 /explain missing_field inputs.hypothesis {"inputs": {"premise": "a"}}
422 /explain invalid_input inputs.hypothesis {"inputs": {"premise": "a", "hypothesis": " "}}
422 /explain invalid_input inputs {"inputs": " "}
422 /explain invalid_type inputs.displacy {"inputs": {"displacy": 3}}
422 /explain invalid_input inputs.displacy {"inputs": {"displacy": {"words": [{"text": "a b"}], "arcs": []}}}
422 /explain invalid_input inputs {"inputs": {"displacy": {"words": [{"text": "\u0000"}], "arcs": []}}}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{"start": 0, "end": 2, "label": "det", LEFT}]}}}
422 /explain invalid_input inputs.displacy {"inputs": TWICE}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{DET, LEFT}, {DET, "dir": "right"}]}}}
422 /explain invalid_value inputs.displacy.arcs[0].dir {"inputs": {TREE: [{DET, "dir": "up"}]}}}
422 /explain invalid_input inputs.conllu {"inputs": {"conllu": "1\tdog"}}
422 /explain missing_field inputs.displacy.words {"inputs": {"conllu": "x", "displacy": {}}}
422 /explain unknown_prior priors.word {"inputs": "a dog", "priors": {"word": false}}
422 /explain invalid_value priors.alpha {"inputs": "a dog", "priors": {"alpha": -1}}
422 /explain no_explanation model {"inputs": "a dog", "model": "tiny-flat"}
422 /explain missing_field inputs.b {"inputs": {"a": "x"}}
422 /explain invalid_input inputs.b {"inputs": {"a": "x", "b": " "}}
422 /explain invalid_value inputs.b.conllu {"inputs": {"a": "x", "b": {"conllu": ""}}}
422 /explain unknown_field inputs.a {"inputs": {"a": "x", "b": "y", "premise": "z", "hypothesis": "w"}}
422 /explain wrong_task model {"inputs": {"a": "x", "b": "y"}, "model": "tiny-sst2"}
422 /explain wrong_task model {"inputs": {"premise": "x", "hypothesis": "y"}, "model": "tiny-related"}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{FROM "label": "\ud800", LEFT}]}}}
422 /explain invalid_input inputs.displacy {"inputs": {TREE: [{FROM "label": "a\tb", LEFT}]}}}
422 /nli missing_field premise {}
422 /nli missing_field hypothesis {"premise": "a"}
422 /nli missing_field pairs[1].hypothesis {"pairs": [{"premise": "a", "hypothesis": "b"}, {"premise": "a"}]}
422 /nli unknown_field premise {"pairs": [], "premise": "a", "hypothesis": "b"}
422 /nli invalid_input premise {"premise": "", "hypothesis": "b"}
422 /nli invalid_input hypothesis {"premise": "a", "hypothesis": " "}
422 /nli invalid_input pairs {"pairs": []}
422 /nli invalid_input pairs[1].hypothesis {"pairs":[PAIR,{"premise":"a","hypothesis":""}]}
422 /nli invalid_input pairs[0].hypothesis.displacy {"pairs": [{"premise": "a", "hypothesis": TWICE}]}
422 /nli wrong_task model {"premise": "a", "hypothesis": "b", "model": "tiny-sst2"}
413 /nli too_many_inputs pairs {"pairs": MANY}
422 /predict invalid_value inputs {"inputs": []}
422 /predict invalid_value inputs[0] {"inputs": [[]]}
422 /predict invalid_type inputs {"inputs": {"a": "b"}}
422 /predict invalid_value inputs {"inputs": ["a", "b", "c"]}
422 /predict invalid_value inputs[1] {"inputs": [["a"], ["a", "b", "c"]]}
422 /predict invalid_type inputs[1] {"inputs": [["a"], "b"]}
422 /predict unsupported inputs {"inputs": [["a"], ["b", "c"]]}
422 /predict invalid_input inputs[1] {"inputs": ["a", ""]}
422 /predict invalid_input inputs[1][0] {"inputs": [["a", "b"], ["", "b"]]}
422 /predict invalid_input inputs {"inputs": ""}
422 /predict wrong_task model {"inputs": ["a", "b"], "model": "tiny-sst2"}
422 /predict wrong_task model {"inputs": "a", "model": "tiny-nli"}
422 /predict invalid_type raw_scores {"inputs": "a", "raw_scores": 1}
422 /predict unsupported truncation_direction {"inputs":"a","truncate":true,"truncation_direction":"left"}
413 /predict too_many_inputs inputs {"inputs": MANY}
413 /predict too_many_inputs x {"inputs": "a", "x": MANY}
413 /predict too_many_inputs options.y {"inputs": "a", "options": {"y": MANY}}
422 /relatedness invalid_input pairs {"pairs": []}
422 /relatedness invalid_input pairs[0].b {"pairs": [{"a": "x", "b": " "}]}
422 /relatedness unknown_field pairs[0].c {"pairs": [{"a": "x", "b": "y", "c": "z"}]}
422 /relatedness wrong_task model {"pairs": [{"a": "x", "b": "y"}], "model": "tiny-sst2"}
422 /relatedness input_too_long pairs[1].b {"pairs": [{"a": "a", "b": "b"}, {"a": "a", "b": "LONG"}]}
413 /relatedness too_many_inputs pairs {"pairs": MANY}
422 /rerank invalid_input texts {"query": "a", "texts": []}
422 /rerank invalid_input query {"query": "", "texts": ["a"]}
422 /rerank invalid_input texts[1] {"query": "a", "texts": ["a", " "]}
422 /rerank invalid_input documents[0] {"query": "kids", "documents": [""]}
413 /rerank too_many_inputs texts {"query": "a", "texts": MANY}
422 /similarity invalid_input inputs.sentences {"inputs": {"source_sentence": "a", "sentences": []}}
422 /similarity invalid_input inputs.source_sentence {"inputs": {"source_sentence": "", "sentences": ["a"]}}
422 /similarity invalid_input inputs.sentences[1] {"inputs":{"source_sentence":"a","sentences":["a","\u0000"]}}
422 /similarity unsupported parameters.prompt_name {"inputs":TEXTS,"parameters":{"prompt_name":"query"}}
413 /similarity too_many_inputs inputs.sentences {"inputs": {"source_sentence": "a", "sentences": MANY}}
422 /tokenize unsupported prompt_name {"inputs": "a", "prompt_name": "query"}
413 /tokenize too_many_inputs inputs {"inputs": MANY}
422 /v1/embeddings invalid_input input {"input": [], "model": "tiny-flat"}
422 /v1/embeddings invalid_input input {"input": "", "model": "tiny-flat"}
422 /v1/embeddings invalid_input input[1] {"input": ["a", ""], "model": "tiny-flat"}
422 /v1/embeddings input_too_long input {"input": "LONG", "model": "tiny-flat", "truncate": false}
422 /v1/embeddings invalid_value encoding_format {"input":"a","model":"tiny-flat","encoding_format":"int8"}
422 /v1/embeddings invalid_type user {"input": "a", "model": "tiny-flat", "user": 3}
422 /v1/embeddings invalid_value output_dtype {"input": "a", "model": "tiny-flat", "output_dtype": "float32"}
422 /v1/embeddings unsupported long {"input": "a", "model": "tiny-flat", "truncate": true, "long": "mean"}
422 /v1/embeddings invalid_value dimensions {"input": "a", "model": "tiny-flat", "dimensions": 9}
422 /v1/embeddings unsupported input {"input": [1, 2], "model": "tiny-flat"}
422 /v1/embeddings unsupported input {"input": [[1, 2], [3]], "model": "tiny-flat"}
422 /v1/rerank invalid_input documents {"query": "a", "documents": []}
422 /v1/rerank invalid_type documents[1] {"query": "a", "documents": ["a", 3]}
422 /v1/rerank missing_field documents[1].text {"query": "a", "documents": ["a", {"title": "b"}]}
422 /v1/rerank invalid_input documents[1] {"query": "a", "documents": ["a", " "]}
422 /v1/rerank invalid_value top_n {"query": "a", "documents": ["a"], "top_n": 0}
422 /v1/rerank unsupported rank_fields {"query": "a", "documents": ["a"], "rank_fields": ["title", "text"]}
422 /v1/rerank unsupported max_tokens_per_doc {"query": "a", "documents": ["a"], "max_tokens_per_doc": 1}
422 /v1/rerank invalid_input documents[0] {"query":"a","documents":[{"text":"b","id":"\ud800"}],"return_documents":true}
422 INFER invalid_input id {"id": "\ud800", "inputs": [TENSOR]}
422 INFER invalid_input inputs {"inputs": []}
422 INFER invalid_input inputs {"inputs": [{"name": "words", CODED "shape": [1], "data": ["a"]}]}
422 INFER invalid_type inputs[0].data {"inputs": [{NAMED "shape": [1], "data": [3]}]}
422 INFER invalid_input inputs {"inputs": [{NAMED "shape": [0], "data": []}]}
422 INFER invalid_input inputs.text[1] {"inputs": [{NAMED "shape": [2], "data": ["a", " "]}]}
422 INFER invalid_input inputs[1].name {"inputs": [TENSOR, {NAMED "shape": [1], "data": ["b"]}]}
422 INFER invalid_input inputs[0].name {"inputs": [{"name": "junk", CODED "shape": [1], "data": ["a"]}, TENSOR]}
422 INFER invalid_input inputs[0].shape {"inputs": [{NAMED "shape": [2], "data": ["a"]}]}
422 INFER invalid_input inputs[0].shape {"inputs": [{NAMED "shape": [1, 0], "data": ["a"]}]}
422 INFER invalid_value inputs[0].shape[0] {"inputs": [{NAMED "shape": [-1], "data": ["a"]}]}
422 INFER invalid_value inputs[0].shape {"inputs": [{NAMED "shape": DEEP, "data": ["a"]}]}
422 INFER invalid_value inputs[0].datatype {"inputs":[{"name":"text","shape":[1],"datatype":"FP32","data":["a"]}]}
422 INFER invalid_input outputs[0].name {"inputs": [TENSOR], "outputs": [{"name": "logits"}]}
422 INFER unsupported outputs[0].parameters.classification {"inputs": [TENSOR], "outputs": RANKED}
422 INFER unsupported parameters.long {"inputs": [TENSOR], "parameters": {"truncate": true, "long": "mean"}}
422 /v2/embed invalid_input texts[1] {"model": "tiny-flat", "texts": ["a", " "]}
422 /v2/embed invalid_value embedding_types[0] {"model": "tiny-flat", "texts": ["a"], "embedding_types": ["float32"]}
422 /v2/embed invalid_value embedding_types {"model": "tiny-flat", "texts": ["a"], "embedding_types": []}
422 /v2/embed unsupported truncate {"model": "tiny-flat", "texts": ["a"], "truncate": "START"}
422 /v2/embed unsupported images {"model": "tiny-flat", "texts": ["a"], "images": ["data:image/png;base64,"]}
"""
"""Status, route, code, field (- for none) and body."""
MESSAGES = r"""
/embed | the body: must be an object with inputs | []
/explain | the body: must be an object with inputs | "a"
/nli | premise: does not belong here; GET /docs lists the fields | {"premise": "a", "hypothesis": "b", "pairs": []}
/nli | pairs[0]: must be an object with premise, hypothesis | {"pairs": [["a", "b"]]}
/similarity | inputs: must be an object with source_sentence, sentences | {"inputs": []}
/explain | priors: must be an object | {"inputs": "a", "priors": []}
/classify | options: must be an object | {"inputs": "a", "options": []}
/nli | pairs: must be a list | {"pairs": "a"}
/embed | model: must be a string | {"inputs": "a", "model": 3}
/embed | truncate: must be true or false | {"inputs": "a", "truncate": 1}
/embed | dimensions: must be an integer | {"inputs": "a", "dimensions": 1.5}
/embed | dimensions is 9: the model has 8 | {"inputs": "a", "dimensions": 9, "normalize": false}
/explain | priors.alpha: must be a number | {"inputs": "a", "priors": {"alpha": "1"}}
/embed | inputs.conllu: must not be empty | {"inputs": {"conllu": ""}}
/embed | inputs.displacy.words: must not be empty | {"inputs": {"displacy": {"words": [], "arcs": []}}}
/embed | inputs.displacy.words: must have at most 10000 items | {"inputs": {"displacy": {"words": FOREST, "arcs": []}}}
/embed | inputs.displacy: a relation holds half of a surrogate pair: send valid Unicode | {"inputs": {TREE: [SPLIT]}}}
/embed | inputs holds 65, more than 64: send several requests | {"inputs": MANY}
/predict | x holds 65, more than the 64 of any field: leave it out | {"inputs": "a", "x": MANY}
/embed | inputs: token ids are not accepted, each model has its own; send the text | {"inputs": [1, 2]}
/embed | there is no model 'bert'; known are: tiny-flat, tiny-nli, tiny-related, tiny-sst2 | {"inputs":"a",BERT}
INFER | inputs: the model reads text, not 'words'; name a tensor text | {"inputs": [UNKNOWN]}
"""
"""Route, message and body."""
TOO_LONG = """
/embed | inputs[1] has 17 tokens | tiny-flat | set truncate to true | {"inputs": ["a", "LONG"]}
/embed | inputs has more than 160 tokens | tiny-flat | set truncate to true | {"inputs": "HUGE"}
/embed | inputs has more than 500 characters without white space | tiny-flat | set truncate to true | {"inputs":"WIDE"}
/nli | premise has 17 tokens | tiny-nli | set truncate to true | {"premise": "LONG", "hypothesis": "a"}
/explain | inputs has 17 tokens | tiny-sst2 | set truncate to true | {"inputs": "LONG"}
/similarity | inputs.sentences[0] has 17 tokens | tiny-flat | set parameters.truncate to true | {"inputs": LONGER}
/rerank | query has 17 tokens | tiny-flat | set truncate to true | {"query": "LONG", "texts": ["a"]}
/v2/embed | texts[0] has 17 tokens | tiny-flat | set truncate to END | {MODEL, "texts": ["LONG"], "truncate": "NONE"}
INFER | inputs.text[0] has 17 tokens | tiny-flat | set parameters.truncate to true | {"inputs": [LONGEST]}
"""
"""Route, the text and its length, model, remedy and body."""
SHORT = {
    "LONGER": '{"source_sentence": "a", "sentences": ["LONG"]}',
    "LONGEST": '{NAMED "shape": [1], "data": ["LONG"]}',
    "MODEL": '"model": "tiny-flat"',
    "LONG": "kids " * 17,  # than the models read
    "HUGE": "kids " * 161,
    "WIDE": "a" * 501,
    "MANY": json.dumps(["a"] * 65),
    "FOREST": json.dumps([{"text": "a"}] * 10_001),
    "DEEP": json.dumps([1] * 33),
    "PAIR": '{"premise": "a", "hypothesis": "b"}',
    "TEXTS": '{"source_sentence": "a", "sentences": ["a"]}',
    "LABELS": '["kids", "bad dog", "hands"]',
    "TENSOR": '{NAMED "shape": [1], "data": ["a"]}',
    "RANKED": '[{"name": "embedding", "parameters": {"classification": 1}}]',
    "BERT": '"model": "bert"',
    "RAW": '"parameters": {"function_to_apply": "none"}',
    "UNKNOWN": '{"name": "words", CODED "shape": [1], "data": ["a"]}',
    "NAMED": '"name": "text", CODED',
    "CODED": '"datatype": "BYTES",',
    "TWICE": "{TREE: [{DET, LEFT}, {DET, LEFT}]}}",
    "SPLIT": r'{FROM "label": "\ud800", LEFT}',
    "TREE": '"displacy": {"words": [{"text": "a"}, {"text": "dog"}], "arcs"',
    "DET": 'FROM "label": "det"',
    "FROM": '"start": 0, "end": 1,',
    "LEFT": '"dir": "left"',
}


async def refused(client: Client, route: str, body: str) -> httpx.Response:
    for short, long in SHORT.items():
        body = body.replace(short, long)
    path = path_of(route.replace("INFER", INFER))
    return await client.post(path, content=body.encode(), headers=JSON)


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
async def test_the_field_is_named(client: Client, case: str) -> None:
    status, route, code, param, body = case.split(maxsplit=4)
    named = None if param == "-" else param
    message = check(await refused(client, route, body), int(status), code, named)["message"]
    assert (named or "") in message


@pytest.mark.parametrize("case", MESSAGES.strip().splitlines())
async def test_the_message_says_what_to_do(client: Client, case: str) -> None:
    route, message, body = case.split(" | ")
    assert error_of(await refused(client, route, body))["message"] == message


@pytest.mark.parametrize("case", TOO_LONG.strip().splitlines())
async def test_a_text_that_is_too_long_is_counted(client: Client, case: str) -> None:
    route, text, model, remedy, body = case.split(" | ")
    limits = "(16 tokens, and 500 characters without white space)"
    error = check(await refused(client, route, body), 422, "input_too_long", text.split()[0])
    message = f"{text} and is longer than {model} reads {limits}: shorten it, or {remedy}"
    assert error["message"] == message
