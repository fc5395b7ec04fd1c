"""What each route refuses: status, code and the field that is named, in the words of the request."""

import httpx
import pytest

from tests.app.test_errors import JSON, check

pytestmark = pytest.mark.anyio

REFUSED = r"""
422 /classify unknown_field colour {"inputs": "a", "colour": 1}
422 /classify invalid_value top_k {"inputs": "a", "top_k": 0}
422 /classify unknown_field normalize {"inputs": "a", "normalize": true}
422 /classify invalid_input inputs[1] {"inputs": ["a", ""]}
422 /embed missing_field inputs {}
422 /embed invalid_type - []
422 /embed invalid_type - "a"
422 /embed invalid_type inputs {"inputs": 3}
422 /embed invalid_type inputs {"inputs": null}
422 /embed invalid_type inputs {"inputs": {"text": "a"}}
422 /embed invalid_type inputs[1] {"inputs": ["a", 3]}
422 /embed invalid_type inputs[0] {"inputs": [["a"]]}
422 /embed invalid_type truncate {"inputs": "a", "truncate": "yes"}
422 /embed invalid_type truncate {"inputs": "a", "truncate": 1}
422 /embed invalid_type normalize {"inputs": "a", "normalize": "true"}
422 /embed invalid_type dimensions {"inputs": "a", "dimensions": "3"}
422 /embed invalid_type dimensions {"inputs": "a", "dimensions": 3.0}
422 /embed invalid_type dimensions {"inputs": "a", "dimensions": true}
422 /embed invalid_value dimensions {"inputs": "a", "dimensions": 0}
422 /embed invalid_type model {"inputs": "a", "model": 3}
422 /embed invalid_value long {"inputs": "a", "long": "cut"}
422 /embed unsupported long {"inputs": "a", "long": "mean", "truncate": true}
422 /embed unsupported prompt_name {"inputs": "a", "prompt_name": "query"}
422 /embed unsupported truncation_direction {"inputs": "a", "truncation_direction": "Left", "truncate": true}
422 /embed invalid_value truncation_direction {"inputs": "a", "truncation_direction": "up"}
422 /embed invalid_input inputs {"inputs": []}
422 /embed invalid_input inputs {"inputs": ""}
422 /embed invalid_input inputs[1] {"inputs": ["a", " \t\n"]}
422 /embed invalid_input inputs[1] {"inputs": ["a", "a\u0000"]}
422 /embed invalid_input inputs {"inputs": "\ud800"}
422 /embed invalid_input inputs[2] {"inputs": ["a", "b", "\udfff x"]}
422 /embed input_too_long inputs[1] {"inputs": ["a", "LONG"]}
422 /nli missing_field premise {}
422 /nli invalid_type - []
422 /nli missing_field hypothesis {"premise": "a"}
422 /nli invalid_type hypothesis {"premise": "a", "hypothesis": 3}
422 /nli invalid_type pairs {"pairs": "a"}
422 /nli missing_field pairs[1].hypothesis {"pairs": [{"premise": "a", "hypothesis": "b"}, {"premise": "a"}]}
422 /nli unknown_field premise {"pairs": [], "premise": "a", "hypothesis": "b"}
422 /nli unknown_field pairs[0].c {"pairs": [{"premise": "a", "hypothesis": "b", "c": 1}]}
422 /nli invalid_input premise {"premise": "", "hypothesis": "b"}
422 /nli invalid_input hypothesis {"premise": "a", "hypothesis": " "}
422 /nli invalid_input pairs {"pairs": []}
422 /nli invalid_input pairs[1].hypothesis {"pairs":[PAIR,{"premise":"a","hypothesis":""}]}
422 /predict invalid_value inputs {"inputs": []}
422 /predict invalid_value inputs[0] {"inputs": [[]]}
422 /predict invalid_type inputs {"inputs": {"a": "b"}}
422 /predict invalid_value inputs {"inputs": ["a", "b", "c"]}
422 /predict invalid_value inputs[1] {"inputs": [["a"], ["a", "b", "c"]]}
422 /predict invalid_type inputs[1] {"inputs": [["a"], "b"]}
422 /predict unsupported inputs {"inputs": [["a"], ["b", "c"]]}
422 /predict invalid_input inputs[1] {"inputs": ["a", ""]}
422 /predict invalid_input inputs[1][0] {"inputs": [["a", "b"], ["", "b"]]}
422 /predict invalid_input inputs[1][0] {"inputs": [["a"], [""]]}
422 /predict invalid_input inputs {"inputs": ""}
422 /predict wrong_task model {"inputs": ["a", "b"], "model": "tiny-sst2"}
422 /predict wrong_task model {"inputs": "a", "model": "tiny-nli"}
422 /predict invalid_type raw_scores {"inputs": "a", "raw_scores": 1}
422 /predict unsupported truncation_direction {"inputs":"a","truncate":true,"truncation_direction":"left"}
404 /relatedness model_not_found model {"pairs": [{"a": "x", "b": "y"}], "model": "nobody"}
422 /relatedness invalid_input pairs {"pairs": []}
422 /relatedness missing_field pairs[0].b {"pairs": [{"a": "x"}]}
422 /relatedness invalid_input pairs[0].b {"pairs": [{"a": "x", "b": " "}]}
422 /relatedness unknown_field pairs[0].c {"pairs": [{"a": "x", "b": "y", "c": "z"}]}
422 /relatedness missing_field pairs {"a": "x", "b": "y"}
422 /relatedness wrong_task model {"pairs": [{"a": "x", "b": "y"}], "model": "tiny-sst2"}
422 /rerank invalid_input texts {"query": "a", "texts": []}
422 /rerank invalid_input query {"query": "", "texts": ["a"]}
422 /rerank invalid_input texts[1] {"query": "a", "texts": ["a", " "]}
422 /rerank invalid_type texts {"query": "a", "texts": "a"}
422 /rerank missing_field query {"texts": ["a"]}
422 /similarity invalid_input inputs.sentences {"inputs": {"source_sentence": "a", "sentences": []}}
422 /similarity invalid_input inputs.source_sentence {"inputs": {"source_sentence": "", "sentences": ["a"]}}
422 /similarity invalid_input inputs.sentences[1] {"inputs":{"source_sentence":"a","sentences":["a","\u0000"]}}
422 /similarity unsupported parameters.prompt_name {"inputs":TEXTS,"parameters":{"prompt_name":"query"}}
422 /similarity invalid_type inputs {"inputs": "a"}
422 /tokenize unsupported prompt_name {"inputs": "a", "prompt_name": "query"}
422 /tokenize invalid_input inputs[1] {"inputs": ["a", ""]}
422 /v1/embeddings missing_field model {"input": "a"}
422 /v1/embeddings missing_field input {"model": "tiny-flat"}
422 /v1/embeddings invalid_input input {"input": [], "model": "tiny-flat"}
422 /v1/embeddings invalid_input input {"input": "", "model": "tiny-flat"}
422 /v1/embeddings invalid_input input[1] {"input": ["a", ""], "model": "tiny-flat"}
422 /v1/embeddings input_too_long input {"input": "LONG", "model": "tiny-flat", "truncate": false}
422 /v1/embeddings invalid_value encoding_format {"input":"a","model":"tiny-flat","encoding_format":"int8"}
422 /v1/embeddings invalid_type user {"input": "a", "model": "tiny-flat", "user": 3}
422 /v1/embeddings invalid_type truncate {"input": "a", "model": "tiny-flat", "truncate": 1}
422 /v1/embeddings invalid_value long {"input": "a", "model": "tiny-flat", "long": "cut"}
422 /v1/embeddings unsupported long {"input": "a", "model": "tiny-flat", "truncate": true, "long": "mean"}
422 /v1/rerank missing_field query {"documents": ["a"]}
422 /v1/rerank missing_field documents {"query": "a"}
422 /v1/rerank invalid_input documents {"query": "a", "documents": []}
422 /v1/rerank invalid_type documents[1] {"query": "a", "documents": ["a", 3]}
422 /v1/rerank missing_field documents[1].text {"query": "a", "documents": ["a", {"title": "b"}]}
422 /v1/rerank invalid_input documents[1] {"query": "a", "documents": ["a", " "]}
422 /v1/rerank invalid_value top_n {"query": "a", "documents": ["a"], "top_n": 0}
422 /v1/rerank unsupported rank_fields {"query": "a", "documents": ["a"], "rank_fields": ["title", "text"]}
422 /v1/rerank unsupported max_tokens_per_doc {"query": "a", "documents": ["a"], "max_tokens_per_doc": 1}
"""
"""Status, route, code, field (- for none) and body."""
SHORT = {
    "LONG": "kids " * 17,  # than the models read
    "PAIR": '{"premise": "a", "hypothesis": "b"}',
    "TEXTS": '{"source_sentence": "a", "sentences": ["a"]}',
}


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
async def test_the_field_is_named(client: httpx.AsyncClient, case: str) -> None:
    status, path, code, param, body = case.split(maxsplit=4)
    for short, long in SHORT.items():
        body = body.replace(short, long)
    answer = await client.post(path, content=body.encode(), headers=JSON)
    named = None if param == "-" else param
    assert (named or "") in check(answer, int(status), code, named)["message"]
