"""`python -m tools suite`: every set of a bundle's kind, on toy data whose right answers are known."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.text.arrays import Floats
from heedful.text.kinds import NLI_LABELS
from heedful.training.similarity import Figure
from heedful.training.tasks.base import Example
from tests.builders import BuiltParser, build_bundle
from tests.shipped import BUNDLES
from tests.writing import lines, write, write_rows
from tools import bundle_records, suite
from tools.local_model import open_folder
from tools.suites import embedding, search
from tools.suites import figures as sets
from tools.suites.figures import calibration_error
from tools.tasks import held_out

TEXTS = ("a dog is good", "two kids wash", "the man", "their hands is bad", "not a kid", "dogs")
PAIRS = [Example((a, b), (i + j) % 3) for i, a in enumerate(TEXTS) for j, b in enumerate(TEXTS)]
DOCUMENTS = ["cats chase mice", "dogs chase cats and cats", "birds sing", "a mouse sings at night"]
TOPICS = ("sea", "war", "food")


def recorded(folder: Path, parser: Path, data: Path, rows: int | None = None) -> list[str]:
    """What is printed of a bundle's dev sets; the record is written to `data`."""
    where: Any = {"data": data, "parser": str(parser)}
    return list(suite.record(str(folder), data, split="dev", rows=rows, **where))


def test_an_nli_bundle_is_scored_and_its_calibration_measured(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sets.NLI, "dev", {"toy": lambda _: PAIRS, "roles": lambda _: PAIRS[:9]})
    labels = ("contradiction", "entailment", "neutral")  # another order than the data's
    build_bundle(tmp_path, pipeline, name="tiny-nli", kind="nli", labels=labels, temperature=2.0)
    folder = tmp_path / "tiny-nli"
    printed = recorded(folder, pipeline.folder, tmp_path)
    with open_folder(folder, str(pipeline.folder)) as model:
        logits = model.logits(PAIRS)[:, [1, 2, 0]]
    gold = np.array([one.label for one in PAIRS])
    found = json.loads((tmp_path / "suite/tiny-nli.json").read_text())
    assert found["version"] == read(folder).card.version
    accuracy, raw, served, of_roles, apart = (one["value"] for one in found["figures"][:5])
    assert accuracy == pytest.approx((logits.argmax(1) == gold).mean())
    assert raw == pytest.approx(calibration_error(softmax(logits * 2), gold), abs=1e-6)
    assert served == pytest.approx(calibration_error(softmax(logits), gold), abs=1e-6)
    assert of_roles == pytest.approx((logits[:9].argmax(1) == gold[:9]).mean())
    assert apart == (logits[:9].argmax(1) != NLI_LABELS.index("entailment")).mean()
    assert printed[0] == f"toy: accuracy {accuracy:.4f} (36 rows)"
    page = "\n".join(bundle_records.suite(tmp_path / "suite", tmp_path))
    assert f"| `tiny-nli` | {found['version']} | {100 * accuracy:.1f} |" in page


def test_embeddings_are_scored_beside_their_own_words(tmp_path: Path) -> None:
    pairs = [Example((a, b), 5.0 * (a == b)) for a in TEXTS for b in TEXTS]
    rows = [{"a": one.texts[0], "b": one.texts[1], "score": one.label} for one in pairs]
    sick = lines(*({**row, "label": "neutral"} for row in rows))
    files = {"stsb/dev.jsonl": lines(*rows), "sick/train.jsonl": sick, "sick/dev.jsonl": sick}
    write(tmp_path, files)
    shipped = BUNDLES / "ms-san-embed"
    with open_folder(shipped, str(BUNDLES / "parser")) as model:
        vectors = model.embed([text for one in pairs for text in one.texts])
    cosines = (vectors[0::2] * vectors[1::2]).sum(axis=1)
    figures = recorded(shipped, BUNDLES / "parser", tmp_path, rows=100)
    expected = spearmanr(cosines, [one.label for one in pairs]).statistic
    assert figures[0] == f"STS-B: spearman {expected:.4f} (36 rows)"
    assert figures[1] == "STS-B related above unrelated: AUC 1.0000 (36 rows)"
    assert not (tmp_path / "suite").exists()  # a part of the sets is not recorded
    assert [line.partition(":")[0] for line in figures[4:]] == 4 * ["mean of its word vectors"]


def test_bm25_is_the_formula() -> None:
    found = search.bm25(["cats and mice", "sings"], DOCUMENTS)
    words = [[w for w in text.split() if w not in ("and", "a", "at")] for text in DOCUMENTS]
    mean = sum(map(len, words)) / 4
    for row, query in zip(found, (["cats", "mice"], ["sings"]), strict=True):
        for score, document in zip(row, words, strict=True):
            expected = 0.0
            for word in query:
                held = sum(word in one for one in words)
                count = document.count(word)
                length = 1 - search.B + search.B * len(document) / mean
                share = count * (search.K1 + 1) / (count + search.K1 * length)
                expected += math.log(1 + (4 - held + 0.5) / (held + 0.5)) * share
            assert score == pytest.approx(expected)


def by_topic(texts: Sequence[str]) -> Floats:
    """A vector that knows a text's topic and nothing else."""
    return np.array([[topic in text for topic in TOPICS] for text in texts], np.float32)


def by_chance(texts: Sequence[str]) -> Floats:
    """A vector that knows nothing of what a text says."""
    return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)


def test_who_knows_the_topic_is_right_in_every_kind(tmp_path: Path) -> None:
    rows = [{"text": f"{topic} number {i}", "label": topic} for topic in TOPICS for i in range(40)]
    asked = {"query": "the sea?", "positive": ["sea it is"], "negative": ["war is", "food is"]}
    same: list[dict[str, Any]] = [
        {"sentence1": f"a {one}", "sentence2": f"that {other}", "label": int(one == other)}
        for one in TOPICS
        for other in TOPICS
    ]
    similar = [
        {"a": one["sentence1"], "b": one["sentence2"], "score": 5 * one["label"]} for one in same
    ]
    documents = [{"id": topic, "text": f"of the {topic}"} for topic in TOPICS]
    documents.append({"id": "blank", "text": " "})
    judged = [{"query": topic, "doc": topic, "score": 1} for topic in TOPICS]
    judged += [{"query": "sea", "doc": "war", "score": 0}, {**judged[0], "doc": "blank"}]
    parts: dict[str, list[Any]] = {"corpus": documents, "queries": documents, "qrels": judged}
    pairs = [{"a": f"{topic}?", "b": f"A text of {topic}."} for topic in TOPICS]
    sets: dict[str, list[Any]] = {
        **{f"clinc150/{split}": rows for split in ("train", "dev")},
        **{f"massive_en/{split}": rows for split in ("train", "test")},
        **{"stackoverflow_titles/dev": rows, "wikiqa/dev": [asked], "qqp/dev": same},
        **{f"{name}/{part}": one for name in search.JUDGED for part, one in parts.items()},
    }
    write_rows(tmp_path / "mteb_dev", sets)
    write_rows(tmp_path / "stsb", {"dev": similar})
    write_rows(tmp_path / "text/pairs", dict.fromkeys(held_out.PAIRS, pairs))
    figures = list(embedding.figures(by_topic, tmp_path))
    assert [one.value for one in figures] == pytest.approx([1.0] * len(figures))
    assert list(embedding.means(figures)) == [*embedding.KINDS, "mean"]
    assert embedding.means(embedding.figures(by_chance, tmp_path))["mean"] < 0.7
    # The mean is over the sets of a kind, and then over kinds.
    found = [Figure(f"search: {name}", "", value, None) for name, value in (("a", 0.2), ("b", 0.4))]
    found += [Figure(f"{kind}: c", "", 0.6, None) for kind in embedding.KINDS[1:]]
    assert embedding.means(found)["mean"] == pytest.approx((0.3 + 5 * 0.6) / 6)
