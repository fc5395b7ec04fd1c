"""Every dataset of labelled texts, in its official layout and as it lies in the data folder."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from heedful.training import tasks
from heedful.training.errors import DataError, DataMissing
from heedful.training.tasks.base import Example
from tests.datasets import DATA, needs_data

LABELLED = ("trec", "cr", "mpqa", "subj", "r8", "imdb", "yelp", "news")
NEWS_ROW = "{0}\t{1}\thttp://x\tX\t{2}\tstory\tx.com\t1394470370698\n"


def write(folder: Path, name: str, content: str, encoding: str = "utf-8") -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode(encoding))


def texts(task: str, folder: Path) -> dict[str, set[str]]:
    """Texts by label, of all splits together."""
    found = tasks.get(task)
    rows = [one for source in (*found.train, found.dev, found.test) for one in source.read(folder)]
    return {
        label: {one.texts[0] for one in rows if one.label == number}
        for number, label in enumerate(found.labels)
    }


def test_trec(tmp_path: Path) -> None:
    lines = "DESC:manner How did serfdom develop ?\nHUM:ind Who was Camus\u00e9 ?\n"
    write(tmp_path, "train_5500.label", lines, "latin-1")
    write(tmp_path, "TREC_10.label", "NUM:dist How far is it ?\n")
    found = texts("trec", tmp_path)
    assert found["DESC"] == {"How did serfdom develop ?"}
    assert found["HUM"] == {"Who was Camus\u00e9 ?"}
    assert found["NUM"] == {"How far is it ?"}


@pytest.mark.parametrize(
    ("task", "negative", "positive", "encoding"),
    [
        ("cr", "CR/custrev.neg", "CR/custrev.pos", "utf-8"),
        ("mpqa", "MPQA/mpqa.neg", "MPQA/mpqa.pos", "utf-8"),
        ("subj", "SUBJ/subj.objective", "SUBJ/subj.subjective", "cp1252"),
        ("subj", "plot.tok.gt9.5000", "quote.tok.gt9.5000", "cp1252"),
    ],
)
def test_a_file_a_label(
    tmp_path: Path, task: str, negative: str, positive: str, encoding: str
) -> None:
    write(tmp_path, negative, "it broke\n\nit \u2019s loud\n", encoding)
    with pytest.raises(DataMissing, match="SentEval"):
        texts(task, tmp_path)  # half of it is missing
    write(tmp_path, positive, "i like it \n", encoding)
    first, second = tasks.get(task).labels
    assert texts(task, tmp_path) == {first: {"it broke", "it \u2019s loud"}, second: {"i like it"}}


def test_r8(tmp_path: Path) -> None:
    write(tmp_path, "r8-train-all-terms.txt", "earn\tnet rises\nmoney-fx\tdollar falls\n")
    write(tmp_path, "r8-test-all-terms.txt", "ship\ttanker sinks\n")
    found = texts("r8", tmp_path)
    assert (found["earn"], found["money-fx"], found["ship"]) == (
        {"net rises"},
        {"dollar falls"},
        {"tanker sinks"},
    )


def test_imdb_without_its_markup(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path, f"aclImdb/{split}/neg/0_2.txt", f"Bad.<br /><br />Not {split}.")
        write(tmp_path, f"aclImdb/{split}/pos/0_9.txt", f"Good {split}.")
    assert texts("imdb", tmp_path) == {
        "negative": {"Bad.  Not train.", "Bad.  Not test."},
        "positive": {"Good train.", "Good test."},
    }


def test_yelp(tmp_path: Path) -> None:
    rows = '{"stars": 5.0, "text": "Lovely"}\n{"stars": 1.0, "text": "No"}\n'
    write(tmp_path, "yelp_academic_dataset_review.json", rows)
    found = texts("yelp", tmp_path)
    assert (found["1"], found["3"], found["5"]) == ({"No"}, set(), {"Lovely"})


def test_news_by_tabs_and_by_commas(tmp_path: Path) -> None:
    rows = NEWS_ROW.format(1, 'Fed says "no"', "b") + NEWS_ROW.format(2, "Flu spreads", "m")
    write(tmp_path / "uci", "newsCorpora.csv", rows)
    header = "ID,TITLE,URL,PUBLISHER,CATEGORY,STORY,HOSTNAME,TIMESTAMP\n"
    comma = f'{header}1,"Fed says ""no""",u,p,b,s,h,1\n2,Flu spreads,u,p,m,s,h,1\n'
    write(tmp_path / "kaggle", "uci-news-aggregator.csv", comma)
    for folder in ("uci", "kaggle"):
        found = texts("news", tmp_path / folder)
        assert found["business"] == {'Fed says "no"'}
        assert found["health"] == {"Flu spreads"}
    write(tmp_path / "short", "newsCorpora.csv", rows + "3\tonly a title\n")
    with pytest.raises(DataError, match=r"newsCorpora\.csv:3: 2 cells"):
        texts("news", tmp_path / "short")


def test_mnli_without_its_undecided_pairs(tmp_path: Path) -> None:
    row = '{{"sentence1": "A dog.", "sentence2": "{0}", "gold_label": "{1}"}}\n'
    for split in ("train", "dev_matched", "dev_mismatched"):
        rows = row.format(split, "neutral") + row.format("x", "-")
        write(tmp_path, f"multinli_1.0/multinli_1.0_{split}.jsonl", rows)
    mnli = tasks.get("mnli")
    assert mnli.train[0].read(tmp_path) == [Example(("A dog.", "train"), 1)]
    assert mnli.test.read(tmp_path) == [Example(("A dog.", "dev_mismatched"), 1)]


@pytest.mark.parametrize(
    ("task", "name", "content", "said"),
    [
        ("cr", "cr/all.jsonl", '{"text": "a"}', r"all\.jsonl:1: no 'label'; docs/data\.md"),
        ("cr", "cr/all.jsonl", '{"text": 1, "label": "negative"}', r":1: 'text' is no text"),
        ("cr", "cr/all.jsonl", "[1]", r"all\.jsonl:1: not a JSON object"),
        ("snli", "snli/dev.jsonl", '{"label": "neutral"}', r"dev\.jsonl:1: no 'premise'"),
        (
            "snli",
            "snli/dev.jsonl",
            '{"premise": "a", "hypothesis": "b", "label": "-"}\n'
            '{"premise": "a", "hypothesis": "b", "label": "Neutral"}',
            r"dev\.jsonl:2: label 'Neutral' is none of entailment, neutral, contradiction",
        ),
        (
            "sick-entailment",
            "sick/dev.jsonl",
            '{"a": "a", "b": "b", "score": 3, "label": "unknown"}',
            r"dev\.jsonl:1: label 'unknown' is none of entailment",
        ),
        ("yelp", "yelp_10k/all.jsonl", '{"text": "a", "label": "five"}', r":1: .*'five'"),
        ("trec", "trec/train.jsonl", "[" * 100_000, r"train\.jsonl:1: not a JSON object"),
        (
            "trec",
            "trec/train.jsonl",
            f'{{"text": "a", "label": {"1" * 5000}}}',
            r"train\.jsonl:1: not a JSON object",
        ),
        (
            "trec",
            "trec/train.jsonl",
            '{"text": "\\ud800", "label": "NUM"}',
            r"train\.jsonl:1: 'text' is no text: surrogates not allowed",
        ),
        ("news", "uci-news-aggregator.csv", "ID,TITLE\n1,a", r"tor\.csv:2: no 'CATEGORY'"),
        ("sst5", "trees/dev.txt", "(2 a)\n\n(2 (2 a) (2 b)", r"dev\.txt:3: a bracket is never"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, task: str, name: str, content: str, said: str
) -> None:
    write(tmp_path, name, content)
    with pytest.raises(DataError, match=said):
        tasks.get(task).dev.read(tmp_path)


def test_an_unknown_label_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "r8-test-all-terms.txt", "ship\ttanker\nsugar\tsweet\n")
    with pytest.raises(DataError, match=r"terms\.txt:2: label 'sugar' is none of acq"):
        tasks.get("r8").test.read(tmp_path)


def test_a_file_of_another_encoding_is_named(tmp_path: Path) -> None:
    write(tmp_path, "r8-test-all-terms.txt", "ship\t\u00e9\n", "latin-1")
    with pytest.raises(DataError, match=r"terms\.txt: not utf-8"):
        tasks.get("r8").test.read(tmp_path)


WHOLE = gzip.compress(b'{"text": "What is it ?", "label": "DESC"}\n' * 99)


@pytest.mark.parametrize(
    "content",
    [WHOLE[:-20], WHOLE[:30] + b"x" * 9 + WHOLE[30:], b"<html>"],
    ids=["cut", "changed", "page"],
)
def test_a_download_that_broke_off_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trec").mkdir()
    (tmp_path / "trec/test.jsonl.gz").write_bytes(content)
    with pytest.raises(
        DataError, match=r"trec/test\.jsonl\.gz: not a whole gzip file: get it again"
    ):
        tasks.get("trec").test.read(tmp_path)


def test_a_review_of_another_encoding_is_named(tmp_path: Path) -> None:
    write(tmp_path, "aclImdb/test/neg/0_1.txt", "caf\u00e9", "latin-1")
    with pytest.raises(DataError, match=r"0_1\.txt: not utf-8"):
        tasks.get("imdb").test.read(tmp_path)


@pytest.mark.parametrize("task", LABELLED)
def test_what_is_missing_is_named_with_its_origin(tmp_path: Path, task: str) -> None:
    with pytest.raises(DataMissing, match="https://"):
        tasks.get(task).test.read(tmp_path)


@needs_data
@pytest.mark.parametrize(
    ("task", "train_and_dev", "test"),
    [  # rows by label, as docs/data.md counts them
        ("trec", (86, 1162, 1250, 1223, 835, 896), (9, 138, 94, 65, 81, 113)),
        ("r8", (1596, 253, 2840, 41, 190, 206, 108, 251), (696, 121, 1083, 10, 81, 87, 36, 75)),
        ("imdb", (12500, 12500), (12500, 12500)),
    ],
)
def test_datasets_with_a_test_split(
    task: str, train_and_dev: tuple[int, ...], test: tuple[int, ...]
) -> None:
    found = tasks.get(task)
    seen = Counter(one.label for one in (*found.train[0].read(DATA), *found.dev.read(DATA)))
    assert tuple(seen[label] for label in range(len(found.labels))) == train_and_dev
    held = Counter(one.label for one in found.test.read(DATA))
    assert tuple(held[label] for label in range(len(found.labels))) == test


@needs_data
@pytest.mark.parametrize(
    ("task", "rows"),
    [
        ("cr", (1366, 2405)),
        ("mpqa", (7292, 3311)),
        ("subj", (5000, 5000)),
        ("yelp", (749, 927, 1461, 3526, 3337)),
        ("news", (2061, 2188, 84, 2033)),
    ],
)
def test_datasets_without_splits(task: str, rows: tuple[int, ...]) -> None:
    found = tasks.get(task)
    seen = Counter(
        one.label for source in (*found.train, found.dev, found.test) for one in source.read(DATA)
    )
    assert tuple(seen[label] for label in range(len(found.labels))) == rows


@needs_data
def test_mnli_of_the_data_folder() -> None:
    mnli = tasks.get("mnli")
    counts = [len(source.read(DATA)) for source in (*mnli.train, mnli.dev, mnli.test)]
    assert counts == [37_847, 9_815, 1_000]


@needs_data
def test_matched_mnli_learns_no_premise_of_its_dev_split() -> None:
    matched = tasks.get("mnli-matched")
    train, dev = (
        [one.texts[0] for one in source.read(DATA)] for source in (*matched.train, matched.dev)
    )
    assert len(train) + len(dev) == 37_847
    assert 1_800 < len(dev) < 2_000
    assert not set(train) & set(dev)
    assert matched.test is tasks.get("mnli").dev
    both = tasks.get("mnli-matched-snli")
    assert (both.dev, both.test) == (matched.dev, matched.test)
    assert both.train == (*matched.train, *tasks.get("snli").train)
