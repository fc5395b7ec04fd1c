"""The service on real bundles and a real parser."""

import asyncio
import gc
import shutil
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from heedful.runtime.answers import softmax
from heedful.runtime.bundles.loader import load_before_fork
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.errors import (
    BadInput,
    BundleError,
    StartupError,
    TooManyInputs,
)
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service
from heedful.text.batch import Sentence
from heedful.text.parse import ParseJob, Parser, fingerprint
from heedful.text.vocab import Vocab
from tests import asking
from tests.asking import classify, embed, nli, tokenize
from tests.builders import ALPHA, DIMENSION, build_parser, expected_embedding
from tests.process import wait_for
from tests.runtime.conftest import Running

TEXT = "Two kids wash their hands"
MAX_TOKENS = 16


@pytest.fixture(scope="session")
def vocab(models: Path) -> Vocab:
    return Vocab.load(models / "tiny-sst2" / "vocab.txt")


def reference(text: str, parser: Parser, vocab: Vocab, *, tree: bool = True) -> np.ndarray:
    """The embedding of one text, without any of the runtime."""
    (parse,) = parser.parse([ParseJob(text, MAX_TOKENS, tree)])
    sentence = Sentence(vocab.ids(parse.tokens), parse.heads)
    return expected_embedding(sentence, ALPHA if tree else 0.0)


def test_embed_gives_the_encoder_s_vectors(running: Running, parser: Parser, vocab: Vocab) -> None:
    texts = [TEXT, "The dog is not good .", "zebra", TEXT]
    result = running.ask(embed(running.service, texts, model="tiny-sst2"))
    expected = [reference(text, parser, vocab) for text in texts]
    np.testing.assert_allclose(result.value, expected, atol=1e-6)
    assert result.value.dtype == np.float32
    assert result.card.name == "tiny-sst2"
    assert (result.tokens, result.unlisted, result.truncated) == (5 + 6 + 1 + 5, 2, 0)
    assert min(result.timing.parse, result.timing.queue, result.timing.inference) > 0


def test_a_model_without_a_tree_is_not_given_one(
    running: Running, parser: Parser, vocab: Vocab
) -> None:
    result = running.ask(embed(running.service, [TEXT], model="tiny-flat"))
    expected = reference(TEXT, parser, vocab, tree=False)
    np.testing.assert_allclose(result.value[0], expected, atol=1e-6)


def test_classify_gives_the_head_s_probabilities(running: Running, models: Path) -> None:
    texts = [TEXT, "bad", "a dog"]
    vectors = running.ask(embed(running.service, texts, model="tiny-sst2")).value
    head = OrtSession(models / "tiny-sst2" / "head.onnx", "cpu", 1)
    result = running.ask(classify(running.service, texts))
    np.testing.assert_allclose(result.value, softmax(head.run({"sentence": vectors})), atol=1e-6)
    assert result.card.labels == ("negative", "positive")
    raw = running.ask(classify(running.service, texts, raw=True))
    np.testing.assert_allclose(raw.value, head.run({"sentence": vectors}), atol=1e-5)


def test_an_error_names_a_text_by_its_path(running: Running) -> None:
    inputs = Inputs(["a", " "], ["the first", "row 7 of table.csv"], "the table")
    with pytest.raises(BadInput, match=r"^row 7 of table\.csv is blank: send a text$") as caught:
        running.service.bind("embed").embed(inputs)
    assert caught.value.param == "row 7 of table.csv"
    with pytest.raises(BadInput, match=r"^the table is empty"):
        running.service.bind("embed").embed(Inputs([], [], "the table"))


def test_nli_reads_the_premise_first(running: Running, models: Path) -> None:
    pairs = [(TEXT, "a dog"), ("a dog", TEXT), ("bad", "bad")]
    sides = list(zip(*pairs, strict=True))
    first, second = (
        running.ask(embed(running.service, side, model="tiny-nli")).value for side in sides
    )
    head = OrtSession(models / "tiny-nli" / "head.onnx", "cpu", 1)
    result = running.ask(nli(running.service, pairs))
    expected = softmax(head.run({"first": first, "second": second}))
    np.testing.assert_allclose(result.value, expected, atol=1e-6)
    assert np.abs(result.value[0] - result.value[1]).max() > 1e-3
    assert result.card.labels == ("entailment", "neutral", "contradiction")


def test_tokenize_gives_offsets_ids_and_the_tree(running: Running, parser: Parser) -> None:
    text = "  The dog washes\n"
    result = running.ask(tokenize(running.service, [text], model="tiny-flat"))
    (got,) = result.value
    assert [text[a:b] for a, b in zip(got.parse.starts, got.parse.stops, strict=True)] == [
        *("The", "dog", "washes")
    ]
    assert got.known.tolist() == [True, True, False]
    assert not got.composed.any()  # a bundle that composes no words
    assert got.ids.tolist()[2] == 1
    (expected,) = parser.parse([ParseJob(text, MAX_TOKENS, tree=True)])
    assert got.parse.heads.tolist() == expected.heads.tolist()
    assert got.parse.deps == expected.deps


@pytest.mark.parametrize("model", ["tiny-flat", "tiny-nli", "tiny-sst2"])
def test_a_text_has_one_vector_whatever_it_is_sent_with(running: Running, model: str) -> None:
    rng = np.random.default_rng(0)
    words = ["kids", "dog", "wash", "bad", "xyzzy", "."]
    others = [" ".join(rng.choice(words, size=rng.integers(1, 16))) for _ in range(511)]
    ask, embed = running.ask, partial(asking.embed, running.service)
    alone = ask(embed([TEXT], model=model)).value[0]
    in_64 = ask(embed([*others[:20], TEXT, *others[20:63]], model=model)).value[20]
    last_of_512 = ask(embed([*others, TEXT], model=model)).value[-1]

    async def among_other_requests() -> np.ndarray:
        requests = [embed([other], model=model) for other in others[:100]]
        answers = await asyncio.gather(embed([TEXT], model=model), *requests)
        vector: np.ndarray = answers[0].value[0]
        return vector

    for vector in (in_64, last_of_512, ask(among_other_requests())):
        np.testing.assert_allclose(vector, alone, rtol=0, atol=1e-5)


def test_a_text_at_the_limit_is_whole_and_one_beyond_is_cut_with_leave(
    running: Running, parser: Parser, vocab: Vocab
) -> None:
    full, longer = "dog " * MAX_TOKENS, "dog " * MAX_TOKENS + "bad bad"
    ask, service = running.ask, running.service
    assert ask(embed(service, [full], model="tiny-sst2")).truncated == 0
    result = ask(embed(service, [longer, TEXT, full], model="tiny-sst2", truncate=True))
    assert (result.truncated, result.tokens) == (1, MAX_TOKENS + 5 + MAX_TOKENS)
    expected = reference(longer, parser, vocab)
    np.testing.assert_allclose(result.value[0], expected, atol=1e-6)
    pair = ask(nli(service, [(longer, longer), (TEXT, longer), (TEXT, TEXT)], truncate=True))
    assert pair.truncated == 2


def test_models_that_were_loaded_before_serve_until_a_reload(models: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(models, tmp_path / "models")
    options = Options(folder, threads=1)

    async def scenario(service: Service) -> None:
        shutil.rmtree(folder / "tiny-nli")
        await service.start()  # from what was loaded
        assert (await embed(service, ["dog"])).value.shape == (1, DIMENSION)
        assert "tiny-nli" in service.registry.cards
        done = await service.reload()
        assert done.removed == ("tiny-nli",)
        await service.stop(timeout=5)

    tasks = set(Path("/proc/self/task").iterdir())
    loaded = load_before_fork(folder, None)
    wait_for(
        lambda: set(Path("/proc/self/task").iterdir()) <= tasks or None,
        "no thread that a fork would lose",
    )
    assert loaded.parser.fingerprint == fingerprint(folder / "parser")
    removed = weakref.ref(loaded.registry.models["tiny-nli"])
    service = Service(options, loaded=loaded)
    del loaded
    asyncio.run(scenario(service))
    gc.collect()
    assert removed() is None


def refused(options: Options) -> StartupError:
    async def scenario() -> None:
        await Service(options).start()

    with pytest.raises(StartupError) as caught:
        asyncio.run(scenario())
    return caught.value


def test_no_bundle_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    assert "there is no folder" in str(refused(Options(tmp_path / "nowhere")))
    (tmp_path / "parser").mkdir()
    assert "make one with `heedful export`" in str(refused(Options(tmp_path)))


def test_another_parser_stops_the_start(tmp_path: Path, models: Path) -> None:
    other = build_parser(tmp_path / "other")
    (other.folder / "meta.json").write_text((other.folder / "meta.json").read_text() + "\n")
    error = refused(Options(models, parser=str(other.folder), threads=1))
    assert isinstance(error, BundleError)
    assert error.bundle == "tiny-flat"
    assert "was made with the parser en_tiny" in error.reason


def test_a_queue_smaller_than_a_request_is_refused(models: Path) -> None:
    with pytest.raises(StartupError, match="could never be admitted"):
        Service(Options(models, max_queue=10, max_batch_inputs=11))


def test_more_inputs_than_a_request_may_hold(running: Running) -> None:
    most = running.service.options.max_batch_inputs
    assert running.ask(embed(running.service, ["dog"] * most)).value.shape == (most, DIMENSION)
    with pytest.raises(TooManyInputs, match="2048"):
        running.ask(embed(running.service, ["dog"] * (most + 1)))
    with pytest.raises(TooManyInputs):
        running.ask(nli(running.service, [("a", "b")] * (most + 1)))
