import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.training import tasks
from heedful.training.data_folder import OFFICIAL, VARIABLE, data_folder, records
from heedful.training.errors import ConfigError, DataError, DataMissing
from heedful.training.tasks.base import UNLABELLED, Example, Task
from heedful.training.tasks.embed import TIMES, sentences
from heedful.training.tasks.mined import mined, nearest
from heedful.training.tasks.nli import hypotheses
from heedful.training.tasks.sst import nodes
from heedful.training.tasks.trec import joined

BUNDLES = Path(__file__).parents[2] / "bundles"


def test_every_node_of_a_tree() -> None:
    found = list(nodes(r"(3 (2 It) (4 (2 \/) (4 (2 -LRB-) (4 lovely))))"))
    assert found == [
        ("It", 2),
        ("/", 2),
        ("(", 2),
        ("lovely", 4),
        ("( lovely", 4),
        ("/ ( lovely", 4),
        ("It / ( lovely", 3),
    ]


@pytest.mark.parametrize("broken", ["(3 (2 It)", "(3 It))", "It)"])
def test_a_broken_tree_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="bracket"):
        list(nodes(broken))


binary_trees = st.recursive(
    st.tuples(st.integers(0, 4), st.text("abc'.", min_size=1)),
    lambda child: st.tuples(st.integers(0, 4), child, child),
    max_leaves=12,
)


@given(binary_trees)
def test_a_tree_written_is_the_tree_read(tree: tuple[object, ...]) -> None:
    def write(node: tuple[object, ...]) -> str:
        label, *rest = node
        inner = " ".join(write(one) if isinstance(one, tuple) else str(one) for one in rest)
        return f"({label} {inner})"

    def walk(node: tuple[object, ...]) -> list[tuple[str, object]]:
        label, *rest = node
        if not isinstance(rest[0], tuple):
            return [(str(rest[0]), label)]
        below = [walk(child) for child in rest if isinstance(child, tuple)]
        whole = " ".join(found[-1][0] for found in below)
        return [*(one for found in below for one in found), (whole, label)]

    assert list(nodes(write(tree))) == walk(tree)


def test_sst2_leaves_the_neutral_ones_out(data: Path) -> None:
    task = tasks.get("sst2")
    dev = task.dev.read(data)
    assert [one.label for one in dev] == [1] * 4 + [0] * 4
    assert dev[0] == Example(("a movie is good",), 1)
    train = {one.texts[0] for one in task.train[0].read(data)}
    assert train == {t for one in dev for t in (one.texts[0], one.texts[0][8:], one.texts[0][11:])}
    assert len(tasks.get("sst5").dev.read(data)) == 9


def test_official_snli_without_its_undecided_pairs(data: Path) -> None:
    pairs = tasks.get("snli").test.read(data)
    assert pairs == [
        Example(("Two kids wash.", "Kids wash."), 0),
        Example(("A dog.", "A man."), 2),
    ]


def test_hypotheses_of_one_premise_are_paired_without_a_label() -> None:
    pairs = [
        *(
            Example(("A man eats.", said), 0)
            for said in ("Someone eats.", "He cooks.", "He cooks.")
        ),
        Example(("A dog.", "A cat."), 2),
        Example(("A man eats.", "A dog."), 2),
    ]
    assert hypotheses(pairs) == [
        Example(("Someone eats.", "He cooks."), UNLABELLED),
        Example(("Someone eats.", "A dog."), UNLABELLED),
        Example(("He cooks.", "Someone eats."), UNLABELLED),
        Example(("He cooks.", "A dog."), UNLABELLED),
        Example(("A dog.", "Someone eats."), UNLABELLED),
        Example(("A dog.", "He cooks."), UNLABELLED),
    ]


def test_a_missing_file_is_named_with_its_address_and_the_page(tmp_path: Path) -> None:
    with pytest.raises(
        DataMissing, match=r"snli_1\.0_test\.jsonl.*nlp\.stanford\.edu.*docs/data\.md"
    ):
        tasks.get("snli").test.read(tmp_path)


def test_every_missing_dataset_is_named_with_its_address(tmp_path: Path) -> None:
    for task in {task.test.name: task for task in tasks.TASKS.values()}.values():
        with pytest.raises(DataMissing) as missing:
            task.test.read(tmp_path)
        assert any(address in str(missing.value) for address in OFFICIAL.values())
        assert str(tmp_path) in str(missing.value)


def test_the_data_folder_is_the_environments_or_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv(VARIABLE)
    assert data_folder() == Path("data")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"text": "a"}\n{"text"\n')
    with pytest.raises(DataError, match=r"x\.jsonl:2"):
        list(records(file))


def test_an_unknown_task_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="sst2"):
        tasks.get("sst3")


VARIANTS = [task for task in tasks.TASKS.values() if task.variant_of]


@pytest.mark.parametrize("task", VARIANTS, ids=lambda task: task.name)
def test_a_variant_differs_from_its_task_in_what_it_is_trained_on(task: Task) -> None:
    whole = tasks.get(task.variant_of)
    assert task.answers == whole.answers == whole.name
    assert replace(task, name=whole.name, train=whole.train, variant_of="") == whole
    assert task.train != whole.train


@pytest.mark.parametrize(
    "card", sorted(BUNDLES.glob("*/card.json")), ids=lambda card: card.parent.name
)
def test_a_shipped_card_names_no_variant(card: Path) -> None:
    name = json.loads(card.read_text())["task"]
    assert tasks.get(name).answers == name


def test_a_text_is_cut_into_sentences() -> None:
    text = 'It is 3.5 m. "Is it?" she said<br /><br />Then they left ... e.g. home! ' + "Far " * 41
    assert sentences(text) == ["It is 3.5 m.", '"Is it?" she said', "Then they left ... e.g. home!"]


def test_embed_reads_no_sentence_that_it_is_judged_on(tmp_path: Path) -> None:
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb/dev.jsonl").write_text('{"a": "A dog.", "b": "A man.", "score": 2.5}\n')
    (tmp_path / "nli_conj").mkdir()
    texts = ["A dog.", "The camera is good. It is small.", "It is small.", "A man."]
    (tmp_path / "nli_conj/train_adversarial.jsonl").write_text(
        "".join(
            json.dumps({"premise": text, "hypothesis": texts[0], "label": "neutral"}) + "\n"
            for text in texts
        )
    )
    task = tasks.get("embed")
    (source,) = (source for source in task.train if source.name == "nli_conj")
    found = [one.texts for one in source.read(tmp_path)]
    assert found == TIMES * [("The camera is good.",), ("It is small.",)]
    assert task.dev.read(tmp_path) == [Example(("A dog.", "A man."), 2.5)]


SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    '1\tA "dog\tA man\t3.2\tNEUTRAL\n2\tA kid\tNo kid\t1\tCONTRADICTION\n'
)
PAIRS = [{"a": 'A "dog', "b": "A man", "score": 3.2, "label": "neutral"},
         {"a": "A kid", "b": "No kid", "score": 1, "label": "contradiction"}]  # fmt: skip


@pytest.mark.parametrize("official", [True, False])
def test_sick_as_the_table_and_as_lines(tmp_path: Path, official: bool) -> None:
    if official:
        (tmp_path / "SICK_trial.txt").write_text(SICK)
    else:
        (tmp_path / "sick").mkdir()
        (tmp_path / "sick/dev.jsonl").write_text("".join(json.dumps(p) + "\n" for p in PAIRS))
    texts = [('A "dog', "A man"), ("A kid", "No kid")]
    for task, labels in (("sick-relatedness", (3.2, 1.0)), ("sick-entailment", (1, 2))):
        expected = [Example(pair, label) for pair, label in zip(texts, labels, strict=True)]
        assert tasks.get(task).dev.read(tmp_path) == expected


def test_a_table_that_is_not_sick_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SICK_trial.txt").write_text(SICK.replace("relatedness_score", "score"))
    with pytest.raises(DataError, match=r"SICK_trial\.txt:2: no 'relatedness_score'"):
        tasks.get("sick-relatedness").dev.read(tmp_path)


def test_stsb_as_the_table_and_its_scores_from_1_to_5(tmp_path: Path) -> None:
    (tmp_path / "stsbenchmark").mkdir()
    line = "main-captions\tMSRvid\t2012test\t0001\t{}\tA man.\tA dog.\textra\n"
    table = tmp_path / "stsbenchmark/sts-test.csv"
    table.write_text(line.format("0.000") + line.format("5.0"))
    pair = ("A man.", "A dog.")
    assert tasks.get("embed").test.read(tmp_path) == [Example(pair, 0.0), Example(pair, 5.0)]
    assert tasks.get("stsb").test.read(tmp_path) == [Example(pair, 1.0), Example(pair, 5.0)]
    table.write_text("A man.\tA dog.\n")
    with pytest.raises(DataError, match=r"sts-test\.csv:1: 2 cells, not 7"):
        tasks.get("stsb").test.read(tmp_path)


def test_the_nearest_texts_share_the_rarest_words() -> None:
    texts = ["a red boat", "two dogs bark", "the boat sank", "red wine"]
    assert nearest(texts, 2) == [[2, 3], [], [0], [0]]


def test_a_premise_is_paired_with_the_hypotheses_of_its_nearest() -> None:
    pairs = [
        Example(("a boat sails", "it floats"), 0),
        Example(("a boat sails", "it sank"), 2),
        Example(("the boat waits", "it floats"), 0),
        Example(("the boat waits", "someone rows"), 1),
        Example(("two dogs bark", "noise"), 0),
    ]
    assert mined(pairs, 1) == [
        Example(("a boat sails", "someone rows"), UNLABELLED),
        Example(("the boat waits", "it sank"), UNLABELLED),
    ]


def test_joined_questions_begin_as_one_question_and_end_as_another() -> None:
    questions = [
        Example(("Who wrote it ?",), 3),
        Example(("When did he leave ?",), 5),
        Example(("What is a joule ?",), 1),
    ]
    found = joined(questions, 20)
    assert found == joined(questions, 20)
    assert 20 < len(joined(questions, 1_000)) < 1_000  # there are no more
    assert len({one.texts for one in found}) == 20
    assert {one.label for one in found} == {UNLABELLED}
    for one in found:
        words = one.texts[0].split()
        assert any(
            words[:cut] == first.texts[0].split()[:cut]
            and words[cut:] == second.texts[0].split()[-len(words[cut:]) :]
            for first in questions
            for second in questions
            if first is not second
            for cut in range(1, len(words))
        ), one
