"""The service on real bundles and a real parser."""

import asyncio
import gc
import re
import shutil
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.runtime.answers import normalise, softmax
from heedful.runtime.bundles.loader import load_before_fork
from heedful.runtime.device import resolve
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.errors import (
    BadInput,
    BundleError,
    RequestError,
    StartupError,
    TooManyInputs,
    Unavailable,
    UnknownModel,
    WrongTask,
)
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service
from heedful.text.batch import Sentence
from heedful.text.invisible import INVISIBLE
from heedful.text.parse import ParseJob, Parser, fingerprint
from heedful.text.vocab import Vocab
from tests import asking
from tests.asking import classify, embed, nli, similarity, tokenize
from tests.builders import ALPHA, DIMENSION, build_bundle, build_parser, expected_embedding
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


def test_vectors_are_cut_first_and_scaled_after(running: Running) -> None:
    raw = running.ask(embed(running.service, [TEXT, "bad"])).value
    cut = running.ask(embed(running.service, [TEXT, "bad"], dimensions=2)).value
    np.testing.assert_allclose(cut, raw[:, :2], atol=1e-6)
    unit = running.ask(embed(running.service, [TEXT, "bad"], dimensions=2, normalize=True)).value
    norms = np.linalg.norm(raw[:, :2], axis=1, keepdims=True)
    np.testing.assert_allclose(unit, raw[:, :2] / norms, atol=1e-6)
    whole = running.ask(embed(running.service, [TEXT, "bad"], normalize=True)).value
    np.testing.assert_allclose(whole, normalise(raw), atol=1e-6)


@pytest.mark.parametrize("dimensions", [0, -1, DIMENSION + 1])
def test_dimensions_out_of_range_are_refused(running: Running, dimensions: int) -> None:
    with pytest.raises(BadInput, match=f"the model has {DIMENSION}") as caught:
        running.ask(embed(running.service, [TEXT], dimensions=dimensions))
    assert (caught.value.param, caught.value.code) == ("dimensions", "invalid_value")


def test_an_error_names_a_text_by_its_path(running: Running) -> None:
    inputs = Inputs(["a", " "], ["the first", "row 7 of table.csv"], "the table")
    with pytest.raises(BadInput, match=r"^row 7 of table\.csv is blank: send a text$") as caught:
        running.service.bind("embed").embed(inputs)
    assert caught.value.param == "row 7 of table.csv"
    with pytest.raises(BadInput, match=r"^the table is empty"):
        running.service.bind("embed").embed(Inputs([], [], "the table"))


def test_similarity_is_the_cosine_of_the_vectors(running: Running) -> None:
    texts = [TEXT, "bad", "a dog"]
    rows = normalise(running.ask(embed(running.service, texts)).value)
    result = running.ask(similarity(running.service, TEXT, texts))
    np.testing.assert_allclose(result.value, rows @ rows[0], atol=1e-6)
    assert result.tokens == 5 + 5 + 1 + 2
    for source, others, param in (("", texts, "source"), (TEXT, ["a", " "], "others[1]")):
        with pytest.raises(BadInput) as blank:
            running.ask(similarity(running.service, source, others))
        assert blank.value.param == param
    with pytest.raises(BadInput) as none:
        running.ask(similarity(running.service, TEXT, []))
    assert none.value.param == "others"


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


@settings(max_examples=60)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4))
@example(["\u00ad"])
def test_any_text_gets_a_finite_vector_or_a_reason(running: Running, texts: list[str]) -> None:
    try:
        result = running.ask(embed(running.service, texts, model="tiny-sst2", truncate=True))
    except BadInput as error:
        match = re.fullmatch(r"inputs\[(\d+)\]", error.param or "")
        assert match
        text = texts[int(match[1])]
        assert not INVISIBLE.sub("", text).strip() or re.search("[\0\ud800-\udfff]", text)
    else:
        assert result.value.shape == (len(texts), DIMENSION)
        assert np.isfinite(result.value).all()
        assert result.truncated <= len(texts)


@pytest.mark.parametrize(
    ("texts", "param", "reason"),
    [
        ([], "inputs", "is empty"),
        (["a", ""], "inputs[1]", "is blank"),
        ([" \n\u3000"], "inputs[0]", "is blank"),
        (["a\0b"], "inputs[0]", "NUL"),
        (["ok", "\ud83d alone"], "inputs[1]", "surrogate"),
        (["dog " * (MAX_TOKENS + 1)], "inputs[0]", "16 tokens.*set truncate to true"),
        (["a" * 1000], "inputs[0]", "500 characters without white space"),
    ],
)
def test_texts_that_cannot_be_read_are_named_with_the_remedy(
    running: Running, texts: list[str], param: str, reason: str
) -> None:
    for method in (asking.embed, asking.classify, asking.tokenize):
        with pytest.raises(BadInput, match=reason) as caught:
            running.ask(method(running.service, texts))
        assert caught.value.param == param


def test_in_pairs_the_side_is_named(running: Running) -> None:
    for pairs, param in (
        ([("a", "b"), ("a", " ")], "pairs[1].hypothesis"),
        ([("dog " * 99, "b")], "pairs[0].premise"),
        ([], "pairs"),
    ):
        with pytest.raises(BadInput) as caught:
            running.ask(nli(running.service, pairs))
        assert caught.value.param == param


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


def test_more_inputs_than_a_request_may_hold(running: Running) -> None:
    most = running.service.options.max_batch_inputs
    assert running.ask(embed(running.service, ["dog"] * most)).value.shape == (most, DIMENSION)
    with pytest.raises(TooManyInputs, match="2048"):
        running.ask(embed(running.service, ["dog"] * (most + 1)))
    with pytest.raises(TooManyInputs):
        running.ask(nli(running.service, [("a", "b")] * (most + 1)))


def test_the_model_that_answers(running: Running) -> None:
    service = running.service
    assert list(service.cards) == ["tiny-flat", "tiny-nli", "tiny-sst2"]
    assert service.bind("embed").card.name == "tiny-flat"
    assert service.bind("nli").card.name == "tiny-nli"
    assert service.bind("classify").card.name == "tiny-sst2"
    for name in service.cards:  # every bundle has an encoder
        assert service.bind("embed", name).card.name == name
    with pytest.raises(UnknownModel, match="known are: tiny-flat, tiny-nli, tiny-sst2") as unknown:
        service.bind("embed", "bert")
    with pytest.raises(WrongTask, match=r"tiny-sst2 does not do nli; .*do: tiny-nli") as wrong:
        service.bind("nli", "tiny-sst2")
    assert unknown.value.param == wrong.value.param == "model"
    with pytest.raises(WrongTask):
        running.ask(classify(service, [TEXT], model="tiny-nli"))


def test_ready_and_the_provider(running: Running, models: Path) -> None:
    assert running.service.ready() is None
    session = OrtSession(models / "tiny-sst2" / "encoder.onnx", resolve("auto"), 1)
    assert running.service.provider == session.provider


def test_a_full_queue_refuses_the_whole_request(models: Path) -> None:
    async def scenario() -> None:
        options = Options(models, threads=1, max_queue=6, max_batch_inputs=4)
        service = Service(options)
        await service.start()
        calls = [asyncio.create_task(embed(service, [f"dog {i}"] * 4)) for i in range(2)]
        calls += [asyncio.create_task(embed(service, ["dog"] * 2))]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [getattr(answer, "code", "fine") for answer in answers] == [
            *("fine", "overloaded", "fine")
        ]
        assert answers[1].retry_after >= 1  # type: ignore[union-attr]  # an Overloaded, see above
        # What was cancelled or failed leaves room again.
        cancelled = asyncio.create_task(embed(service, ["dog"] * 4))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        with pytest.raises(BadInput):
            await embed(service, ["dog " * 99] * 4)
        for _ in range(3):
            await embed(service, ["dog"] * 4)

        # Stopping: requests in flight are answered, later ones refused.
        last = asyncio.create_task(embed(service, ["dog"] * 4))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(service.stop(timeout=30))
        await asyncio.sleep(0)
        assert service.ready() == "the service is stopping"
        with pytest.raises(Unavailable, match="stopping"):
            await embed(service, ["dog"])
        await stopping
        assert (await last).value.shape == (4, DIMENSION)

    asyncio.run(scenario())


def test_without_grace_what_is_in_hand_fails_at_once(models: Path) -> None:
    async def scenario() -> None:
        service = Service(Options(models, threads=1))
        with pytest.raises(Unavailable, match="starting"):
            await embed(service, ["dog"])
        assert service.ready() == "the service is starting"
        await service.start()
        calls = [asyncio.create_task(embed(service, [f"dog {i}"] * 500)) for i in range(4)]
        await asyncio.sleep(0)
        await service.stop(timeout=0)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unavailable}

    asyncio.run(scenario())


def test_models_that_were_loaded_before_serve_until_a_reload(models: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(models, tmp_path / "models")
    options = Options(folder, threads=1)

    async def scenario(service: Service) -> None:
        shutil.rmtree(folder / "tiny-nli")
        await service.start()  # from what was loaded
        assert (await embed(service, ["dog"])).value.shape == (1, DIMENSION)
        assert "tiny-nli" in service.cards
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


@pytest.mark.parametrize("what", ["no_such_pipeline", "blank"])
def test_a_pipeline_that_does_not_load_is_an_error_at_the_start(
    models: Path, tmp_path: Path, what: str
) -> None:
    import spacy

    reason = "cannot load the spaCy pipeline 'no_such_pipeline'"
    if what == "blank":
        what = str(tmp_path / "blank")
        spacy.blank("en").to_disk(what)
        reason = "has no dependency parser"
    assert reason in str(refused(Options(models, parser=what)))


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


def test_a_broken_bundle_stops_the_start(tmp_path: Path, models: Path) -> None:
    shutil.copytree(models, tmp_path / "models")
    (tmp_path / "models" / "tiny-nli" / "head.onnx").unlink()
    error = refused(Options(tmp_path / "models"))
    assert isinstance(error, BundleError)
    assert (error.bundle, error.file) == ("tiny-nli", "head.onnx")


def test_another_parser_stops_the_start(tmp_path: Path, models: Path) -> None:
    other = build_parser(tmp_path / "other")
    (other.folder / "meta.json").write_text((other.folder / "meta.json").read_text() + "\n")
    error = refused(Options(models, parser=str(other.folder), threads=1))
    assert isinstance(error, BundleError)
    assert error.bundle == "tiny-flat"
    assert "was made with the parser en_tiny" in error.reason


def test_a_missing_parser_stops_the_start(models: Path) -> None:
    error = refused(Options(models, parser="no_such_pipeline"))
    assert "no_such_pipeline" in str(error)


def test_a_queue_smaller_than_a_request_is_refused(models: Path) -> None:
    with pytest.raises(StartupError, match="could never be admitted"):
        Service(Options(models, max_queue=10, max_batch_inputs=11))


def test_a_task_that_no_model_does(tmp_path: Path, models: Path) -> None:
    parser = build_parser(tmp_path / "parser")
    build_bundle(tmp_path, parser, name="tiny-flat", kind="embedding", tree=False)

    async def scenario() -> RequestError:
        service = Service(Options(tmp_path, threads=1))
        await service.start()
        try:
            with pytest.raises(UnknownModel, match="no loaded model does nli") as caught:
                await nli(service, [("a", "b")])
        finally:
            await service.stop(timeout=1)
        return caught.value

    assert asyncio.run(scenario()).code == "model_not_found"
