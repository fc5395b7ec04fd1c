"""Every dataset in its layouts, as it lies in the data folder, and what is refused; what the tasks make of them."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from heedful.training import tasks
from heedful.training.data_folder import ADDRESSES
from heedful.training.errors import ConfigError, DataError, DataMissing
from heedful.training.tasks import stsb
from heedful.training.tasks.base import Example
from tests.datasets import DATA, needs_data
from tests.writing import lines, write
from tools.tasks.sst import nodes

NEWS = "{0}\t{1}\thttp://x\tX\t{2}\tstory\tx.com\t1394470370698\n"
NEWS_BY_TABS = NEWS.format(1, 'Fed says "no"', "b") + NEWS.format(2, "Flu spreads", "m")
NEWS_BY_COMMAS = (
    "ID,TITLE,URL,PUBLISHER,CATEGORY,STORY,HOSTNAME,TIMESTAMP\n"
    '1,"Fed says ""no""",u,p,b,s,h,1\n2,Flu spreads,u,p,m,s,h,1\n'
)
TOLD_NEWS = {("business", 'Fed says "no"'), ("health", "Flu spreads")}
LAYOUTS: list[tuple[str, str, dict[str, str], set[tuple[str, str]]]] = [
    (
        *("trec", "latin-1"),
        {"train_5500.label": "HUM:ind Who was Camus\u00e9 ?\n", "TREC_10.label": "NUM:dist How far ?\n"},
        {("person", "Who was Camus\u00e9 ?"), ("number", "How far ?")},
    ),
    (
        *("subj", "cp1252"),
        {"SUBJ/subj.objective": "a\n\nit \u2019s loud\n", "SUBJ/subj.subjective": "i like it \n"},
        {("objective", "a"), ("objective", "it \u2019s loud"), ("subjective", "i like it")},
    ),
    (
        *("r8", "utf-8"),
        {"r8-train-all-terms.txt": "money-fx\tit falls\n", "r8-test-all-terms.txt": "ship\tit sinks\n"},
        {("foreign exchange", "it falls"), ("shipping", "it sinks")},
    ),
    (
        *("imdb", "utf-8"),
        {f"aclImdb/{split}/{side}/0_2.txt": f"{side}.<br />{split}"
         for split in ("train", "test") for side in ("neg", "pos")},
        {(label, f"{label[:3]}. {split}")
         for split in ("train", "test") for label in ("negative", "positive")},
    ),
    (
        *("yelp", "utf-8"),
        {"yelp_academic_dataset_review.json": lines({"stars": 5.0, "text": "Lovely"})},
        {("5", "Lovely")},
    ),
    ("news", "utf-8", {"newsCorpora.csv": NEWS_BY_TABS}, TOLD_NEWS),
    ("news", "utf-8", {"uci-news-aggregator.csv": NEWS_BY_COMMAS}, TOLD_NEWS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "encoding", "files", "expected"), LAYOUTS)
def test_an_official_layout(
    tmp_path: Path, name: str, encoding: str, files: dict[str, str], expected: set[tuple[str, str]]
) -> None:
    write(tmp_path, files, encoding)
    task = tasks.get(name)
    sources = (*task.train[:1], task.dev, task.test)
    rows = [one for source in sources for one in source.read(tmp_path)]
    assert {(task.labels[int(one.label)], one.texts[0]) for one in rows} == expected


SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    '1\tA "dog\tA man\t3.2\tNEUTRAL\n2\tA kid\tNo kid\t1\tCONTRADICTION\n'
)
SICK_LINES = lines(
    {"a": 'A "dog', "b": "A man", "score": 3.2, "label": "neutral"},
    {"a": "A kid", "b": "No kid", "score": 1, "label": "contradiction"},
)


@pytest.mark.parametrize("files", [{"SICK_trial.txt": SICK}, {"sick/dev.jsonl": SICK_LINES}])
def test_sick_as_the_table_and_as_lines(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    pairs = [('A "dog', "A man"), ("A kid", "No kid")]
    for task, labels in (("sick-relatedness", (3.2, 1.0)), ("sick-entailment", (1, 2))):
        expected = [Example(pair, label) for pair, label in zip(pairs, labels, strict=True)]
        assert tasks.get(task).dev.read(tmp_path) == expected


STSB = "main-captions\tMSRvid\t2012test\t0001\t{}\tA man.\tA dog.\textra\n"


def test_undecided_pairs_are_left_out_and_scores_are_1_to_5(tmp_path: Path, data: Path) -> None:
    write(tmp_path, {"stsbenchmark/sts-test.csv": STSB.format("0.000") + STSB.format("5.0")})
    pair = ("A man.", "A dog.")
    assert stsb.TEST.read(tmp_path) == [Example(pair, 0.0), Example(pair, 5.0)]
    assert tasks.get("stsb").test.read(tmp_path) == [Example(pair, 1.0), Example(pair, 5.0)]
    undecided = {"sentence1": "A dog.", "sentence2": "x", "gold_label": "-"}
    for split in ("train", "dev_matched", "dev_mismatched"):
        row = {"sentence1": "A dog.", "sentence2": split, "gold_label": "neutral"}
        write(tmp_path, {f"multinli_1.0/multinli_1.0_{split}.jsonl": lines(row, undecided)})
    mnli = tasks.get("mnli")
    assert mnli.train[0].read(tmp_path) == [Example(("A dog.", "train"), 1)]
    assert mnli.test.read(tmp_path) == [Example(("A dog.", "dev_mismatched"), 1)]
    snli = [Example(("Two kids wash.", "Kids wash."), 0), Example(("A dog.", "A man."), 2)]
    assert tasks.get("snli").test.read(data) == snli


def test_sst2_leaves_the_neutral_ones_out(data: Path) -> None:
    task = tasks.get("sst2")
    dev = task.dev.read(data)
    assert [one.label for one in dev] == [1] * 4 + [0] * 4
    assert dev[0] == Example(("a movie is good",), 1)
    train = {one.texts[0] for one in task.train[0].read(data)}
    assert train == {t for one in dev for t in (one.texts[0], one.texts[0][8:], one.texts[0][11:])}
    assert len(tasks.get("sst5").dev.read(data)) == 9


PAIR = {"premise": "a", "hypothesis": "b"}
WHOLE = gzip.compress(b'{"text": "What is it ?", "label": "DESC"}\n' * 99, mtime=0)
BROKEN = WHOLE[:-20], WHOLE[:30] + b"x" * 9 + WHOLE[30:], b"<html>"
DAMAGED = r"trec/train\.jsonl\.gz: a damaged or incomplete gzip file"
LABEL_OF_ALL = "is none of entailment, neutral, contradiction"
TREC_LINES, R8_TRAIN = "trec/train.jsonl", "r8-train-all-terms.txt"
UNDECIDED = lines(PAIR | {"label": "-"}, PAIR | {"label": "Neutral"})
REFUSED: list[tuple[str, str, str | bytes, str]] = [
    ("cr", "cr/all.jsonl", '{"text": "a"}', r"all\.jsonl:1: no 'label'; docs/data\.md"),
    ("cr", "cr/all.jsonl", '{"text": 1, "label": "negative"}', r":1: 'text' is no text"),
    ("snli", "snli/dev.jsonl", UNDECIDED, rf"dev\.jsonl:2: label 'Neutral' {LABEL_OF_ALL}"),
    (
        *("sick-relatedness", "SICK_trial.txt", SICK.replace("relatedness_score", "score")),
        r"SICK_trial\.txt:2: no 'relatedness_score'",
    ),
    ("stsb", "stsbenchmark/sts-dev.csv", "A man.\tA dog.\n", r"sts-dev\.csv:1: 2 cells, not 7"),
    ("trec", TREC_LINES, "[" * 100_000, r"train\.jsonl:1: not a JSON object"),
    ("trec", TREC_LINES, '{"text": "\\ud800", "label": "NUM"}', ":1: 'text' is no text: surrogat"),
    *(("trec", f"{TREC_LINES}.gz", content, DAMAGED) for content in BROKEN),
    ("news", "newsCorpora.csv", NEWS_BY_TABS + "3\tonly\n", r"newsCorpora\.csv:3: 2 cells"),
    ("sst5", "trees/dev.txt", "(2 a)\n\n(2 (2 a) (2 b)", r"dev\.txt:3: a bracket is never"),
    ("r8", R8_TRAIN, "ship\ta\nsugar\tb\n", r":2: label 'sugar' is none of acq"),
    ("imdb", "aclImdb/train/neg/0_1.txt", b"caf\xe9", r"0_1\.txt: not utf-8"),
]


@pytest.mark.parametrize(("task", "name", "content", "said"), REFUSED)
def test_what_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, task: str, name: str, content: str | bytes, said: str
) -> None:
    (tmp_path / "aclImdb/train/pos").mkdir(parents=True)
    write(tmp_path, {name: content})
    with pytest.raises(DataError, match=said):
        tasks.get(task).dev.read(tmp_path)


def test_every_missing_dataset_is_named_with_its_address_and_the_page(tmp_path: Path) -> None:
    write(tmp_path, {"CR/custrev.neg": "it broke\n"})  # half of one
    for task in {task.test.name: task for task in tasks.TASKS.values()}.values():
        with pytest.raises(DataMissing, match=r"docs/data\.md") as missing:
            task.test.read(tmp_path)
        assert any(address in str(missing.value) for address in ADDRESSES.values())
        assert str(tmp_path) in str(missing.value)


@needs_data
@pytest.mark.parametrize(
    ("task", "rows"),
    [  # of all splits by label, as docs/data.md counts them
        ("trec", (95, 1300, 1344, 1288, 916, 1009)),
        ("r8", (2292, 374, 3923, 51, 271, 293, 144, 326)),
        ("imdb", (25000, 25000)),
        ("cr", (1366, 2405)),
        ("mpqa", (7292, 3311)),
        ("subj", (5000, 5000)),
        ("yelp", (749, 927, 1461, 3526, 3337)),
        ("news", (2061, 2188, 84, 2033)),
        ("mnli", (16482, 16006, 16174)),
    ],
)
def test_the_datasets_of_the_data_folder(task: str, rows: tuple[int, ...]) -> None:
    found = tasks.get(task)
    sources = (*found.train[:1], found.dev, found.test)
    seen = Counter(one.label for source in sources for one in source.read(DATA))
    assert tuple(seen[label] for label in range(len(found.labels))) == rows


@needs_data
def test_matched_mnli_learns_no_premise_of_its_dev_split() -> None:
    matched = tasks.get("mnli-matched")
    sources = (*matched.train, matched.dev)
    train, dev = ([one.texts[0] for one in source.read(DATA)] for source in sources)
    assert len(train) + len(dev) == 37_847
    assert 1_800 < len(dev) < 2_000
    assert not set(train) & set(dev)


def test_a_tree_is_its_phrases_from_the_leaves_on() -> None:
    found = list(nodes(r"(3 (1 (0 (2 It) (2 's)) (2 -LRB-)) (4 (2 \/) (2 -RRB-)))"))
    left = [("It", 2), ("'s", 2), ("It 's", 0), ("(", 2), ("It 's (", 1)]
    assert found == [*left, ("/", 2), (")", 2), ("/ )", 4), ("It 's ( / )", 3)]
    for broken in ("(3 (2 It)", "(3 It))", "It)"):
        with pytest.raises(ValueError, match="bracket"):
            list(nodes(broken))


def test_a_module_of_the_working_folder_adds_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process, as the command does it: the working folder is where a module is looked for first."""
    (tmp_path / "mine.py").write_text(
        "from heedful.training.tasks import TASKS as known\nTASKS = [known['sst2'].variant('mine')]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tasks, "TASKS", dict(tasks.TASKS))
    tasks.add("mine")
    assert tasks.get("mine").answers == "sst2"
    with pytest.raises(ConfigError, match=r"sst2.*--tasks names a module with more"):
        tasks.get("sst3")
    with pytest.raises(ConfigError, match="--tasks json: no module with a list TASKS"):
        tasks.add("json")
