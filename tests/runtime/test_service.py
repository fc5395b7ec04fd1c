"""The service on real bundles and a real parser."""

import asyncio
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.runtime.answers import softmax
from heedful.runtime.bundles.card import Card, ScoreCard
from heedful.runtime.engine.cache import VectorCache
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.engine.work import run_now
from heedful.runtime.errors import StartupError
from heedful.runtime.inference import Inference
from heedful.runtime.model_registry import default
from heedful.runtime.observer import Observer
from heedful.runtime.service import Options, Service
from heedful.text.batch import Sentence
from heedful.text.parse import Parser
from heedful.text.vocab import Vocab
from tests.asking import classify, explain, nli
from tests.builders import ALPHA, BuiltParser, build_bundle, expected_embedding
from tests.runtime.conftest import Running, run

TEXT = "Two kids wash their hands"
MAX_TOKENS = 16
FULL, LONGER = "dog " * MAX_TOKENS, "dog " * MAX_TOKENS + "bad bad"


@pytest.mark.parametrize(("model", "tree"), [("tiny-sst2", True), ("tiny-flat", False)])
def test_embed_gives_the_encoder_s_vectors(
    running: Running, parser: Parser, models: Path, model: str, tree: bool
) -> None:
    """The parses of texts, one of which is cut; without trees for a model that reads none."""
    vocab = Vocab.read((models / model / "vocab.txt").read_bytes())
    texts = [TEXT, "The dog is not good .", "zebra", TEXT, LONGER, FULL]
    result = running.embed(texts, model, truncate=True)
    parses = parser.parse(texts, MAX_TOKENS, tree)
    sentences = [Sentence(vocab.ids(parse.tokens), parse.heads) for parse in parses]
    expected = [expected_embedding(sentence, ALPHA if tree else 0.0) for sentence in sentences]
    np.testing.assert_allclose(result.value, expected, atol=1e-6)
    assert (result.value.dtype, result.card.name) == (np.float32, model)
    tokens = 5 + 6 + 1 + 5 + 2 * MAX_TOKENS
    assert (result.tokens, result.unlisted, result.truncated) == (tokens, 2, 1)


def test_classify_and_nli_give_the_head_s_probabilities(running: Running, models: Path) -> None:
    def head(model: str, **inputs: Any) -> Any:
        return OrtSession((models / model / "head.onnx").read_bytes(), "cpu", 1).run(inputs)

    texts = [TEXT, "bad", "a dog"]
    logits = head("tiny-sst2", sentence=running.embed(texts, "tiny-sst2").value)
    result = running.ask(classify(running.service, texts))
    np.testing.assert_allclose(result.value, softmax(logits), atol=1e-6)
    assert result.card.labels == ("negative", "positive")
    raw = running.ask(classify(running.service, texts, raw=True))
    np.testing.assert_allclose(raw.value, logits, atol=1e-5)
    mark = f"{TEXT}!"  # which gets no full stop
    pairs = [(mark, "a dog!"), ("a dog!", mark), ("bad!", "bad!")]
    first, second = (running.embed(side, "tiny-nli").value for side in zip(*pairs, strict=True))
    result = running.ask(nli(running.service, pairs))
    logits = head("tiny-nli", first=first, second=second)
    np.testing.assert_allclose(result.value, softmax(logits), atol=1e-6)
    assert np.abs(result.value[0] - result.value[1]).max() > 1e-3
    assert result.card.labels == ("entailment", "neutral", "contradiction")
    passage, nearest = "two kids sleep! a dog barks!", "a dog barks!"
    result = running.ask(nli(running.service, [("bad!", "bad!")] * 20 + [(passage, "a dog!")]))
    first = running.embed([passage, nearest], "tiny-nli").value
    second = running.embed(["a dog!"] * 2, "tiny-nli").value
    whole, near = np.log(softmax(head("tiny-nli", first=first, second=second)))[:, None]
    np.testing.assert_allclose(result.value[20:], softmax((whole + near) / 2), atol=1e-6)
    assert np.abs(whole - near).max() > 1e-3
    pairs = [(LONGER, LONGER), (TEXT, LONGER), (TEXT, TEXT)]
    assert running.ask(nli(running.service, pairs, truncate=True)).truncated == 2


def test_nine_tenths_of_the_best_label_move_to_that_which_the_words_tell(
    running: Running, models: Path
) -> None:
    """Of what is entailed an opposite is a contradiction; what says more than the premise is always neutral."""
    words = ("bad", "two", "kids", "wash", "dog", "hands", "their")
    texts = [" ".join(order) + "!" for order in permutations(words, 3) if "bad" in order]
    head = OrtSession((models / "tiny-nli" / "head.onnx").read_bytes(), "cpu", 1)
    for told, moving, pairs in (
        (2, [0], [(text, text.replace("bad", "good")) for text in texts]),
        (1, [0, 2], [(text, text.replace("!", " dog!")) for text in texts]),
    ):
        sides = [running.embed(side, "tiny-nli").value for side in zip(*pairs, strict=True)]
        expected = softmax(head.run(dict(zip(("first", "second"), sides, strict=True))))
        best = expected.argmax(axis=1)
        assert set(best) == {0, 1, 2}
        share = 0.9 * expected.max(axis=1) * np.isin(best, moving)
        expected[np.arange(len(best)), best] -= share
        expected[:, told] += share
        answer = running.ask(nli(running.service, pairs)).value
        np.testing.assert_allclose(answer, expected, atol=1e-6)


def test_int8_graphs_answer_on_the_cpu_and_the_service_says_so(
    tmp_path: Path, pipeline: BuiltParser
) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2", explain=True)
    build_bundle(tmp_path, pipeline, name="twice-sst2", explain=True, int8=True)
    with run(Options(tmp_path, str(pipeline.folder), "cpu", threads=1)) as running:
        precisions = running.service.registry.precisions
        assert precisions == {"tiny-sst2": "float32", "twice-sst2": "int8"}
        once, twice = (running.embed([TEXT, "a dog"], name).value for name in precisions)
        np.testing.assert_allclose(twice, 2 * once, atol=1e-6)
        answer = running.ask(explain(running.service, [TEXT], model="twice-sst2"))
        np.testing.assert_allclose(answer.value.sentences[0].embedding[0], twice[0], atol=1e-5)


def test_kept_vectors_are_bounded_the_last_is_there_and_none_keeps_its_batch() -> None:
    cache, few = VectorCache(1000, Observer(), limit=10_000), VectorCache(2, Observer())
    keys = [("version", b"%d" % number) for number in range(51)]
    for key, vector in zip(keys[:50], np.ones((50, 100), np.float32), strict=True):
        cache.put(key, vector)
        few.put(key, vector)
    assert list(few.get(keys)) == keys[48:50]
    assert len(few.vectors) == 2
    assert 0 < cache.bytes <= 10_000
    assert 0 < len(cache.vectors) < 20
    cache.put(keys[50], np.ones(10_000, np.float32))  # beyond the limit alone
    (vector,) = cache.get(keys[49:]).values()
    assert vector.base is None


def test_equal_sentences_are_encoded_once(running: Running, parser: Parser) -> None:
    model = running.service.registry.models["tiny-sst2"]
    sentences = [model.vocab.sentence(["dog"], np.arange(1))] * 5
    for cache in (None, VectorCache(10, Observer())):
        inference = Inference(model, parser, cache=cache)
        work = next(inference.encode(sentences))
        assert work is not None
        assert len(work.items) == 1
        vectors = run_now(inference.encode(sentences))
        assert vectors.shape == (5, model.card.width)
        assert len(np.unique(vectors, axis=0)) == 1


def test_a_folder_without_bundles_ends_the_start_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="make one with `heedful export`"):
        asyncio.run(Service(Options(tmp_path)).start())


SHIPPED = Card.model_validate_json(Path("bundles/ms-san-nli/card.json").read_bytes())


def card(name: str, *values: float, dataset: str = "snli", **fields: Any) -> Card:
    """A card with `values` as its dev scores, and a test score that must not count."""
    scores = tuple(
        ScoreCard(dataset=dataset, split=split, metric="accuracy", value=value, rows=9)
        for split, value in [*(("dev", value) for value in values), ("test", 0.99)]
    )
    return SHIPPED.model_copy(update={"name": name, "scores": scores, **fields})


def test_the_better_one_on_the_same_dev_split_unless_a_model_is_for_everyday_texts() -> None:
    """Models of another dataset or other labels are not compared."""
    assert default([card("a", 0.79), card("b", 0.80), card("c", 0.75)]).name == "b"
    assert default([card("a", 0.8), card("b", 0.8)]).name == "a"
    labels = ("negative", "positive")
    others = card("b", 0.9, dataset="mnli"), card("c", 0.9, labels=labels), card("d")
    assert default([card("a", 0.5), *others]).name == "a"
    assert default([card("a"), *others]).name == "a"
    everyday = card("z", 0.5, task="sentiment", labels=("negative", "neutral", "positive"))
    assert default([card("a", 0.9), everyday]).name == "z"
