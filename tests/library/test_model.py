"""heedful.load: its answers are the service's, bit for bit, and its errors name what is wrong."""

import asyncio
import copy
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import spacy
from spacy.tokens import Doc

import heedful
from heedful.export.bundle_writer import write
from heedful.library import inputs as library_inputs
from heedful.library.model import Model
from heedful.runtime.bundles.bundle import read
from heedful.runtime.errors import BadInput, BundleError, StartupError, Unavailable, WrongTask
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service, running
from heedful.text.arrays import Doubles, Floats
from heedful.text.parse import fingerprint
from tests import asking
from tests.builders import BuiltParser, build_bundle, random_texts
from tests.process import PATIENCE, ROOT

TEXTS = ["two kids wash", "the dog is not good", "bad", "two kids wash", "a man at the ballgame"]
PAIRS = [("two kids wash", "kids wash hands"), ("the dog is bad", "the dog is good")]


@pytest.fixture(scope="module")
def served(models: Path) -> dict[str, Any]:
    """The service's answers."""

    async def ask() -> dict[str, Any]:
        async with running(Options(models, threads=1)) as service:
            return {
                "vectors": await _embed(service, TEXTS),
                "many": await _embed(service, random_texts(500)),
                "classes": (await asking.classify(service, TEXTS)).value,
                "nli": (await asking.nli(service, PAIRS)).value,
                "relatedness": (
                    await service.answer(
                        service.bind("relatedness").relatedness(
                            Inputs.from_pairs(PAIRS, ("first", "second"))
                        )
                    )
                ).value,
            }

    return asyncio.run(ask())


async def _embed(service: Service, texts: Sequence[str]) -> Floats:
    return (await asking.embed(service, texts, model="tiny-sst2", normalize=True)).value


def test_it_gives_the_services_bits(model: Model, models: Path, served: dict[str, Any]) -> None:
    np.testing.assert_array_equal(model.encode(TEXTS), served["vectors"])
    np.testing.assert_array_equal(model.predict_proba(TEXTS), served["classes"])
    np.testing.assert_allclose(model.encode(random_texts(500)), served["many"], atol=1e-6)
    with heedful.load("tiny-nli", models=models) as nli:
        found = nli.nli(PAIRS)
        assert [list(one.values()) for one in found] == served["nli"].tolist()
        assert set(found[0]) == {"entailment", "neutral", "contradiction"}
    with heedful.load(models / "tiny-related") as related:
        assert related.relatedness(PAIRS).tolist() == served["relatedness"].tolist()


def test_a_string_a_list_and_an_array(model: Model, served: dict[str, Any]) -> None:
    np.testing.assert_array_equal(model.encode(TEXTS[0]), model.encode([TEXTS[0]])[0])
    np.testing.assert_array_equal(model.encode(np.array(TEXTS)), served["vectors"])
    for column in (pa.array(TEXTS), pa.chunked_array([TEXTS[:2], TEXTS[2:]]), iter(TEXTS)):
        np.testing.assert_array_equal(model.encode(column), served["vectors"])
    assert model.encode([]).shape == (0, 8)
    assert model.predict_proba([]).shape == (0, 2)
    short = model.encode(TEXTS, truncate_dim=3, batch_size=2)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)
    assert short.shape == (5, 3)
    prompted = model.encode(["kids"], prompt="two ")
    np.testing.assert_array_equal(prompted, model.encode(["two kids"]))
    assert not np.allclose(np.linalg.norm(model.encode(TEXTS, normalize_embeddings=False)[0]), 1)
    cosines = model.similarity(model.encode(TEXTS), model.encode(TEXTS[:2]))
    assert cosines.shape == (5, 2)
    assert cosines[3, 0] == pytest.approx(1)
    with pytest.raises(
        BadInput, match="first has the width 3, second 8: encode both with the same"
    ):
        model.similarity(short, model.encode(TEXTS))
    with pytest.raises(BadInput, match="second holds no vectors: give those of encode"):
        model.similarity(short, TEXTS)
    with pytest.raises(BadInput, match="first has 3 dimensions: give vectors of encode"):
        model.similarity(model.encode(TEXTS)[None], short)
    assert model.predict(TEXTS)[0] == model.labels[model.predict_proba(TEXTS)[0].argmax()]


def test_long_lists_come_back_in_order_from_one_process_or_two(
    model: Model, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = random_texts(500)
    expected = model.encode(texts)
    monkeypatch.setattr(library_inputs, "CHUNK", 64)
    found = model.encode(texts, show_progress_bar=True)
    assert "tiny-sst2" in (shown := capsys.readouterr()).err
    assert not shown.out
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with heedful.load("tiny-sst2", models=models, processes=2) as two:
        np.testing.assert_array_equal(two.encode(texts), found)
        with pytest.raises(BadInput, match=r"sentences\[70\] has 40 tokens and is longer"):
            two.encode([*texts[:70], "dog " * 40, *texts[:70]], truncate=False)
        np.testing.assert_array_equal(two.encode(texts), found)
    with pytest.raises(Unavailable, match="closed"):
        two.encode(["dog"])


def test_a_pickle_loads_it_again(models: Path, tmp_path: Path) -> None:
    """A copy is a model that is closed alone. A pickle names the bundle, which may have been replaced."""
    folder = shutil.copytree(models / "tiny-sst2", tmp_path / "tiny-sst2")
    with heedful.load(folder, parser=models / "parser", threads=1) as model:
        expected = model.encode(TEXTS)
        pickled = pickle.dumps(model)
        assert len(pickled) < 1000
        with pickle.loads(pickled) as again, copy.copy(model) as copied:
            np.testing.assert_array_equal(again.encode(TEXTS), expected)
            np.testing.assert_array_equal(copied.encode(TEXTS), expected)
        np.testing.assert_array_equal(model.encode(TEXTS), expected)
    other = read(models / "tiny-flat")
    write(folder, other.card.fields(), other.files)
    with pytest.raises(
        BundleError, match=r"tiny-sst2: .* the model that was pickled .*: load it by"
    ):
        pickle.loads(pickled)


def test_a_script_needs_no_guard_and_no_torch(models: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, heedful\n"
        "assert not {'numpy', 'spacy', 'onnxruntime'} & set(sys.modules)\n"
        f"with heedful.load('tiny-sst2', models={str(models)!r}, processes=2) as model:\n"
        "    print(model.encode(['kids'] * 3000).shape, model)\n"
        "assert not {'torch', 'fastapi', 'sklearn'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy; runpy.run_path({str(script)!r}, run_name='x')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(3000, 8) <Model tiny-sst2 ")


def test_a_forked_process_uses_a_loaded_model(models: Path) -> None:
    """Few texts are answered by its threads, many by its processes."""
    script = f"""
import os, signal, heedful
from heedful.library import inputs as library_inputs

library_inputs.CHUNK = 300
texts = [f"two kids wash {{i}}" for i in range(500)]
model = heedful.load("tiny-sst2", models={str(models)!r}, threads=2, processes=2)
for part in (texts[:300], texts):
    expected = model.encode(part, batch_size=2)
    child = os.fork()
    if not child:
        signal.alarm({PATIENCE / 2:.0f})  # where it hangs
        os._exit(0 if (model.encode(part, batch_size=2) == expected).all() else 1)
    print(os.waitpid(child, 0)[1], (model.encode(part, batch_size=2) == expected).all())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.stdout == "0 True\n0 True\n", done.stderr


WORKERS = """
import os, signal, time
from pathlib import Path

def workers():
    children = [one for file in Path("/proc/self/task").glob("*/children") for one in file.read_text().split()]
    return [one for one in children if b"LokyProcess" in Path(f"/proc/{one}/cmdline").read_bytes()]
"""


def ran(script: str) -> subprocess.CompletedProcess[str]:
    """In a session of its own: an interrupt of its group reaches no other process."""
    return subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", WORKERS + script],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "NUM_THREADS" not in name},
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=PATIENCE,
        check=False,
    )


def test_its_processes_take_one_thread_of_blas_and_outlive_an_interrupt(models: Path) -> None:
    """A notebook's interrupt reaches them too. A model that is not closed ends them without a warning."""
    done = ran(f"""
import heedful
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process may ignore or block it
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
model = heedful.load("tiny-sst2", models={str(models)!r}, processes=2)
print(model.encode(["kids"] * 2000).shape)
before = workers()
for child in before:
    variables = Path(f"/proc/{{child}}/environ").read_bytes().split(b"\\0")
    print([one.decode() for one in variables if one.startswith(b"OPENBLAS_NUM_THREADS")])
try:
    os.killpg(0, signal.SIGINT)
    time.sleep({PATIENCE})  # the interrupt may come a moment later
except KeyboardInterrupt:
    print(model.encode(["kids"] * 2000).shape, workers() == before)
""")
    each = "['OPENBLAS_NUM_THREADS=1']\n"
    assert done.stdout == f"(2000, 8)\n{each}{each}(2000, 8) True\n", done.stderr
    assert "ResourceWarning" not in done.stderr


def test_workers_end_when_their_parent_is_killed(models: Path) -> None:
    """They hold the pipe that is read here until the last of them has ended."""
    done = ran(f"""
import heedful
model = heedful.load("tiny-sst2", models={str(models)!r}, processes=2)
print(model.encode(["kids"] * 2000).shape, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "(2000, 8)\n"), done.stderr


def test_a_worker_that_dies_fails_the_call_and_no_later_one(models: Path) -> None:
    done = ran(f"""
import heedful
from heedful.runtime.errors import Unavailable
try:
    with heedful.load("tiny-sst2", models={str(models)!r}, processes=2) as model:
        expected = model.encode(["kids"] * 2000)
        os.kill(int(workers()[0]), signal.SIGKILL)
        model.encode(["kids"] * 2000)
except Unavailable as error:
    print(error)
with heedful.load("tiny-sst2", models={str(models)!r}, processes=2) as model:
    model.encode(["kids"] * 2000)
    for child in workers():
        os.kill(int(child), signal.SIGKILL)
    try:
        model.encode(["kids"] * 2000)
    except Unavailable as error:
        print(error)
    print((model.encode(["kids"] * 2000) == expected).all())
try:
    model.encode(["kids"] * 2000)
except Unavailable as error:
    print(error)
for _ in range(50):
    time.sleep(0.1 * bool(workers()))
print(workers())
""")
    died = "a worker process died: try again\n"
    assert done.stdout == f"{died}{died}True\nthe model is closed: load it again\n[]\n", done.stderr
    assert done.stderr == ""


def test_an_explanation_draws_itself(model: Model, models: Path, tmp_path: Path) -> None:
    found = model.explain("two kids wash", options=ExplainOptions(ablation=True))
    assert repr(found) == "<Explanation tiny-sst2: 'two kids wash'>"
    assert found.tokens == [["two", "kids", "wash"]]
    assert found.answer["prediction"]["label"] == model.predict(["two kids wash"])[0]
    assert found.answer["ablation"]
    drawn = found._repr_html_()
    assert drawn.startswith("<iframe srcdoc=")
    assert "<script" not in drawn  # all of the page is escaped
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == found.html
    with pytest.raises(BadInput, match=r"page.svg: give a name that ends in .html"):
        found.save(tmp_path / "page.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert json.dumps(found.answer["sentences"][0]["tokens"])
    assert json.dumps(found.answer, default=np.ndarray.tolist)
    with heedful.load("tiny-nli", models=models) as nli:
        assert len(nli.explain(*PAIRS[0]).tokens) == 2


def test_evidence_gradients_and_curves_are_the_services(model: Model, models: Path) -> None:
    options = ExplainOptions(faithfulness=True, evidence=True, gradients=True, curves=True)

    async def ask() -> Doubles:
        async with running(Options(models, threads=2)) as service:
            found = await asking.explain(service, ["two kids wash"], options, model="tiny-sst2")
        (evidence,) = found.value[1].evidence or [None]
        assert evidence is not None
        return evidence.weights

    found = model.explain("two kids wash", options=options)
    assert "faithfulness" in found.html
    answer = found.answer
    (evidence,) = answer["evidence"]["sentences"]
    np.testing.assert_allclose(evidence["weights"], asyncio.run(ask()), atol=1e-6)
    assert len(evidence["gradients"]["weights"]) == 3
    assert {"kind", "name", "value"} == set(evidence["correlations"][0])
    assert len(answer["faithfulness"]["sentences"][0]["attended"]) == 1
    assert set(answer["curves"]["sentences"][0]) == {"deleted", "masked"}
    assert json.dumps(answer, default=np.ndarray.tolist)
    alone = model.explain("kids", evidence=True).answer
    assert alone["evidence"]["sentences"] == [None]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": -3}, "alpha is -3: give 0 to 100"),
        ({"alpha": float("nan")}, "alpha is nan: give 0 to 100"),
        ({"k": 0, "faithfulness": True}, "k is 0: give at least 1"),
        ({"priors": {"word": 0.5}}, "priors.word is 0.5: give True or False"),
    ],
)
def test_wrong_options_are_named(model: Model, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        ExplainOptions(**options)
    with pytest.raises(BadInput, match="options is dict: leave it out, and give"):
        model.explain("kids", options=options)  # type: ignore[arg-type]


def test_a_text_is_explained_whole_or_on_request_cut(models: Path) -> None:
    """`predict` reads 64 tokens of this model, curves are drawn up to 24."""
    parser = BuiltParser(models / "parser", "en_tiny", fingerprint(models / "parser"))
    build_bundle(models, parser, name="tiny-long", max_tokens=64, explain=True)
    text, curves = "good kids " * 12 + "bad dog " * 8, ExplainOptions(curves=True)
    with heedful.load("tiny-long", models=models) as model:
        answered = dict(zip(model.labels, model.predict_proba([text])[0], strict=True))
        explained = model.explain(text).answer["prediction"]["scores"]
        assert explained == pytest.approx(answered, abs=1e-5)
        said = r"has 40 tokens: tiny-long is explained up to 24 with curves.* set truncate=True"
        with pytest.raises(BadInput, match=said):
            model.explain(text, options=curves)
        cut = model.explain(text, options=curves, truncate=True)
    assert len(cut.tokens[0]) == 24
    assert cut.answer["prediction"]["scores"] != pytest.approx(answered, abs=1e-2)


def test_pairs_in_every_shape(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = [{"hypothesis": hypothesis, "premise": premise} for premise, hypothesis in PAIRS]
    with heedful.load("tiny-nli", models=models) as nli:
        expected = nli.nli(PAIRS)
        assert nli.nli(named) == expected
        assert nli.nli(zip(*zip(*PAIRS, strict=True), strict=True)) == expected
        assert nli.nli(pair for pair in PAIRS) == expected
        assert nli.nli([list(pair) for pair in PAIRS]) == expected
        assert nli.nli(np.array(PAIRS)) == expected
        assert nli.nli([]) == []
        assert nli.nli(*PAIRS[0]) == expected[0]
        found = nli.nli(PAIRS, batch_size=1, show_progress_bar=True)
        assert found[1] == pytest.approx(expected[1], abs=1e-6)
        assert "tiny-nli" in capsys.readouterr().err
        remedy = "give two strings in a tuple, or a dictionary of premise and hypothesis alone"
        for pair in (
            {**named[0], "label": "neutral"},
            {"a": "kids", "b": "dog"},
            {"kids", "dog"},
            None,
            "ab",
            ["kids"],
            np.array(1),
        ):
            with pytest.raises(BadInput, match=rf"pairs\[1\] is no pair: {remedy}"):
                nli.nli([PAIRS[0], pair])  # type: ignore[list-item]
        for pairs, said in (
            (named[0], "pairs is dict"),
            (None, "pairs is NoneType"),
            ([("kids", None)], r"pairs\[0\].hypothesis is a missing value: give a string"),
            (
                PAIRS[0],
                r"pairs\[0\] is a string: give a list of pairs, \[\(premise, hypothesis\)\]",
            ),
            (
                Table(),  # rows of other columns too would be refused
                r"pairs is a table: .* df\[\['premise', 'hypothesis'\]\].to_dict\('records'\)",
            ),
        ):
            with pytest.raises(BadInput, match=said):
                nli.nli(pairs)  # type: ignore[arg-type]
    with heedful.load(models / "tiny-related") as related:
        named = [{"a": a, "b": b} for a, b in PAIRS]
        np.testing.assert_array_equal(related.relatedness(named), related.relatedness(PAIRS))
        related.relatedness(PAIRS, batch_size=1, show_progress_bar=True)
        assert "tiny-related" in capsys.readouterr().err


class Table:
    """Like a DataFrame: two dimensions, and iterating over it gives the columns' names."""

    shape = (1, 2)

    def __iter__(self) -> Iterator[str]:
        return iter(["text", "label"])


@pytest.mark.parametrize("prompt", [None, "query: "])
@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["kids", " "], r"sentences\[1\] is blank: send a text"),
        (["kids", float("nan")], r"sentences\[1\] is a missing value: give a string"),
        ([None], r"sentences\[0\] is a missing value"),
        (pa.array(["kids", None]), r"sentences\[1\] is a missing value"),
        (pd.Series(["kids", pd.NA]), r"sentences\[1\] is a missing value"),
        (["kids", 3], r"sentences\[1\] is int: give a string"),
        (["kids", np.array(["dog", "bad"])], r"sentences\[1\] is ndarray"),
        (None, "sentences is NoneType: give a list of strings"),
        ({"kids": "dog"}, "sentences is dict: give a list of strings"),
        ({"kids", "dog"}, "sentences is set: give a list of strings"),  # in what order?
        (Table(), r"sentences has the shape \(1, 2\): give one text a row, for example a column"),
        (np.array([["kids"]]), r"sentences has the shape \(1, 1\)"),
    ],
)
def test_what_is_no_text_is_named(model: Model, texts: Any, said: str, prompt: str | None) -> None:
    with pytest.raises(BadInput, match=said):
        model.encode(texts, prompt=prompt)
    if not isinstance(texts, list):
        with pytest.raises(BadInput, match=said.replace("sentences", "texts")):
            model.predict(texts)


def test_a_missing_value_does_not_fit(model: Model) -> None:
    column = pd.Series(["kids", None, " ", "dog " * 40, float("nan"), pd.NA], dtype=object)
    assert model.fits(column).tolist() == [True, *[False] * 5]
    assert model.fits(column, truncate=True).tolist() == [True, False, False, True, False, False]
    with pytest.raises(BadInput, match=r"texts\[1\] is int"):
        model.fits(["kids", 3])  # type: ignore[list-item]


def test_a_document_of_spacy_is_read_with_its_tree(model: Model) -> None:
    """Whatever the model's own parser would say; white space is no word."""
    words = ["two", "kids", " ", "wash", "their", "hands"]
    vectors, vocab = [], spacy.blank("en").vocab
    for heads in ([1, 3, 1, 3, 5, 3], [0, 0, 1, 1, 3, 4]):
        doc = Doc(vocab, words, heads=heads, deps=["dep"] * 6)
        explained = model.explain(doc).answer["sentences"][0]["tokens"]
        kept = [i for i, word in enumerate(words) if word != " "]
        assert [token["text"] for token in explained] == [words[i] for i in kept]
        assert [kept[token["head"]] for token in explained] == [heads[i] for i in kept]
        assert [token["start"] for token in explained] == [doc[i].idx for i in kept]
        vectors.append(model.encode(doc))
        np.testing.assert_array_equal(vectors[-1], model.encode([doc, doc.text])[0])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    flat = Doc(vocab, ["two", "kids", "wash"])
    np.testing.assert_array_equal(model.encode(flat), model.encode(flat.text.rstrip()))
    assert model.fits([doc, flat]).tolist() == [True, True]


def test_wrong_uses_are_named(
    model: Model, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongTask, match="tiny-sst2 does not do nli: load tiny-nli"):
        model.nli(PAIRS)
    shutil.copytree(models / "parser", tmp_path / "parser")
    shutil.copytree(models / "tiny-sst2", tmp_path / "tiny-sst2")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "card.json").touch()
    with (
        heedful.load(tmp_path / "tiny-sst2") as alone,
        pytest.raises(WrongTask, match="tiny-sst2 does not do nli: load a bundle of the kind nli"),
    ):
        alone.nli(PAIRS)
    for ask in (model.encode, model.predict):
        for size in (0, 32.0, "32"):
            with pytest.raises(
                BadInput, match=f"batch_size is {size!r}: give a whole number from 1"
            ):
                ask(TEXTS, batch_size=size)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="texts is one string: give a list"):
        model.predict("kids")
    for texts, dimension in ((TEXTS, 9), ([], -3), ([], 0), (TEXTS, 4.0)):
        said = f"truncate_dim is {dimension}, tiny-sst2 has 8: give a whole number from 1 to 8"
        with pytest.raises(BadInput, match=said):
            model.encode(texts, truncate_dim=dimension)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"torch\.from_numpy"):
        model.encode(TEXTS, convert_to_tensor=True)
    monkeypatch.setenv("HEEDFUL_MODELS", str(models))
    assert heedful.load("tiny-flat").card.kind == "embedding"
    with pytest.raises(StartupError, match=r"no bundle 'tiny-cat'.*known are.*tiny-flat.*hf://"):
        heedful.load("tiny-cat")
    with pytest.raises(StartupError, match="device is 'gpu': give one of auto, cpu, cuda"):
        heedful.load("tiny-flat", device="gpu")  # type: ignore[arg-type]
    for keyword, number in (("threads", 0), ("threads", -1), ("threads", "2"), ("processes", 0)):
        said = f"{keyword} is {number!r}: give a whole number from 1"
        with pytest.raises(StartupError, match=said):
            heedful.load("tiny-flat", **{keyword: number})  # type: ignore[arg-type]
    with pytest.raises(StartupError, match="cannot load the spaCy pipeline '/nope'"):
        heedful.load("tiny-flat", parser="/nope")
    for wrong in (model, None):
        said = f"model is {type(wrong).__name__}: give a bundle's name or its folder"
        with pytest.raises(StartupError, match=said):
            heedful.load(wrong)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        heedful.lode  # type: ignore[attr-defined]  # noqa: B018
    assert heedful.__version__ == version("heedful")
    assert dir(heedful) == ["__version__", "bundles", "classify", "distill", "load"]


def test_predictions_of_models_that_abstain_or_give_several_labels(models: Path) -> None:
    parser = BuiltParser(models / "parser", "en_tiny", fingerprint(models / "parser"))
    build_bundle(models, parser, name="tiny-unsure", abstain=0.9)
    build_bundle(models, parser, name="tiny-several", multi_label=True, explain=True)
    with heedful.load("tiny-unsure", models=models) as unsure:
        best = unsure.predict_proba(TEXTS).max(axis=1)
        found = unsure.predict(TEXTS)
        assert [label is None for label in found] == (best < 0.9).tolist()
        assert set(found) - {None} <= set(unsure.labels)
    with heedful.load("tiny-several", models=models) as several:
        np.testing.assert_array_equal(several.predict(TEXTS), several.predict_proba(TEXTS) >= 0.5)
        explanation = several.explain(TEXTS[0])
        assert "judgement(answer, true)" in explanation.html
        explained = explanation.answer["prediction"]["scores"]
        probable = dict(zip(several.labels, several.predict_proba(TEXTS[:1])[0], strict=True))
        assert explained == pytest.approx(probable, abs=1e-6)
        assert sum(explained.values()) != pytest.approx(1)


def test_labels_of_the_callers(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By each kind of model and by both; long lists come back in order."""
    labels = ["kids", "dog"]
    texts = random_texts(100)
    with (
        heedful.load("tiny-flat", models=models) as embedding,
        heedful.load("tiny-nli", models=models) as nli,
    ):
        both = embedding.classify(texts, labels, nli=nli)
        cosine = embedding.classify(texts, labels)
        assert both != cosine
        assert cosine != nli.classify(texts, labels)
        assert all(sum(one.scores.values()) == pytest.approx(1) for one in both)
        monkeypatch.setattr(library_inputs, "CHUNK", 16)
        for whole, part in zip(both, embedding.classify(texts, labels, nli=nli), strict=True):
            assert part.scores == pytest.approx(whole.scores, abs=1e-4)
        assert embedding.classify([], labels) == []
        with pytest.raises(BadInput, match=r"labels\[1\] repeats labels\[0\]"):
            embedding.classify(texts, ["dog", "Dog"])
        with pytest.raises(BadInput, match="labels is one string"):
            embedding.classify(texts, "dog")
        with pytest.raises(WrongTask, match="tiny-nli is of the kind nli"):
            nli.classify(texts, labels, nli=nli)


def test_labels_need_a_model_that_compares(model: Model) -> None:
    with pytest.raises(
        WrongTask, match="tiny-sst2 does not do zero-shot: load tiny-flat, tiny-nli"
    ):
        model.classify(["kids"], ["dog"])


def test_bundles_are_listed(models: Path) -> None:
    rows = {row["name"]: row for row in heedful.bundles(models)}
    assert set(rows) == {file.parent.name for file in models.glob("*/card.json")}
    assert rows["tiny-sst2"]["kind"] == "classification"
    assert "positive" in rows["tiny-sst2"]["use"]
    with pytest.raises(StartupError, match=r"no bundle 'x' .*install heedful-bundles, .*`make wh"):
        heedful.load("x", models=models / "tiny-sst2")


def test_vectors_in_fewer_bits(model: Model) -> None:
    whole = model.encode(TEXTS)
    found = model.encode(TEXTS, precision="int8")
    assert found.dtype.name == "int8"
    assert np.abs(found).max(axis=1).tolist() == [127] * len(TEXTS)
    cosines = model.similarity(found, found)
    np.testing.assert_allclose(cosines, model.similarity(whole, whole), atol=0.02)
    np.testing.assert_array_equal(model.encode(TEXTS[2], precision="int8"), found[2])
    above = model.encode(TEXTS, precision="uint8")
    np.testing.assert_array_equal(above, found.astype(int) + 128)
    # As sentence-transformers' quantize_embeddings (v3, util/quantization.py) writes them.
    packed = np.packbits(whole > 0).reshape(len(TEXTS), -1)
    bits = model.encode(TEXTS, precision="ubinary")
    np.testing.assert_array_equal(bits, packed)
    binary = model.encode(TEXTS, precision="binary")
    np.testing.assert_array_equal(binary, (packed - 128).astype(np.int8))
    assert [bits.dtype.name, binary.dtype.name] == ["uint8", "int8"]
    assert model.encode([], precision="ubinary").shape == (0, bits.shape[1])
    with pytest.raises(BadInput, match="precision is 'int4': give one of float32, int8, uint8, b"):
        model.encode(TEXTS, precision="int4")  # type: ignore[arg-type]
