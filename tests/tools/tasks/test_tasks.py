"""What the shipped models' tasks make of the datasets."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.training import tasks
from heedful.training.tasks.base import UNLABELLED, Example, Task
from tests.training.test_tasks import lines, write
from tools.tasks import TASKS
from tools.tasks.embed import TIMES, sentences
from tools.tasks.mined import mined, nearest
from tools.tasks.nli_sets import hypotheses
from tools.tasks.trec_taught import joined

BUNDLES = Path(__file__).parents[3] / "bundles"


def test_hypotheses_of_one_premise_are_paired_without_a_label() -> None:
    pairs = [
        *(Example(("A man eats.", said), 0) for said in ("Someone eats.", "He cooks.", "A dog.")),
        Example(("A man eats.", "He cooks."), 2),
        Example(("A dog.", "A cat."), 2),
    ]
    said = ["Someone eats.", "He cooks.", "A dog."]
    expected = [Example((a, b), UNLABELLED) for a in said for b in said if a != b]
    assert hypotheses(pairs) == expected


VARIANTS = [task for task in TASKS if task.variant_of]


@pytest.mark.parametrize("task", VARIANTS, ids=lambda task: task.name)
def test_a_variant_differs_from_its_task_in_what_it_is_trained_on(task: Task) -> None:
    whole = tasks.get(task.variant_of)
    assert task.answers == whole.answers == whole.name
    assert replace(task, name=whole.name, train=whole.train, variant_of="") == whole
    assert task.train != whole.train


def test_a_shipped_card_names_no_variant() -> None:
    for card in BUNDLES.glob("*/card.json"):
        name = json.loads(card.read_text())["task"]
        assert tasks.get(name).answers == name


def test_a_text_is_cut_into_sentences() -> None:
    text = 'It is 3.5 m. "Is it?" she said<br /><br />Then they left ... e.g. home! ' + "Far " * 41
    assert sentences(text) == ["It is 3.5 m.", '"Is it?" she said', "Then they left ... e.g. home!"]


def test_embed_reads_no_sentence_that_it_is_judged_on(tmp_path: Path) -> None:
    read = ["A dog.", "The camera is good. It is small.", "It is small.", "A man."]
    rows = [{"premise": text, "hypothesis": read[0], "label": "neutral"} for text in read]
    write(
        tmp_path,
        {
            "stsb/dev.jsonl": lines({"a": "A dog.", "b": "A man.", "score": 2.5}),
            "nli_conj/train_adversarial.jsonl": lines(*rows),
        },
    )
    task = tasks.get("embed")
    (source,) = (source for source in task.train if source.name == "nli_conj")
    found = [one.texts for one in source.read(tmp_path)]
    assert found == TIMES * [("The camera is good.",), ("It is small.",)]
    assert task.dev.read(tmp_path) == [Example(("A dog.", "A man."), 2.5)]


def test_a_premise_is_paired_with_the_hypotheses_of_its_nearest() -> None:
    read = ["a red boat", "two dogs bark", "the boat sank", "red wine"]
    assert nearest(read, 2) == [[2, 3], [], [0], [0]]  # by the rarest words
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
    asked = ["Who wrote it ?", "When did he leave ?", "What is a joule ?"]
    questions = [Example((text,), number) for number, text in enumerate(asked)]
    found = joined(questions, 20)
    assert found == joined(questions, 20)
    assert 20 < len(joined(questions, 1_000)) < 1_000  # there are no more
    assert len({one.texts for one in found}) == 20
    assert {one.label for one in found} == {UNLABELLED}
    for one in found:
        words = one.texts[0].split()
        assert any(
            words[:cut] == first.split()[:cut]
            and words[cut:] == second.split()[-len(words[cut:]) :]
            for first in asked
            for second in asked
            if first != second
            for cut in range(1, len(words))
        ), one
