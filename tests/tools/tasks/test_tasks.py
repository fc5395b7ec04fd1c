"""What the shipped models' tasks make of the datasets: nothing that they are judged on is learned."""

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training import tasks
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task
from tests.datasets import DATA, needs_data
from tests.shipped import BUNDLES
from tests.training.test_tasks import lines, write
from tools import overlaps
from tools.tasks import TASKS, broad_text, held_out, identity
from tools.tasks.embed import TIMES, sentences
from tools.tasks.mined import mined, nearest
from tools.tasks.nli_sets import hypotheses

VARIANTS = [task for task in TASKS if task.variant_of]
EATS = "A man eats."
BOAT, WAITS = "a boat sails", "the boat waits"


@pytest.mark.parametrize("task", VARIANTS, ids=lambda task: task.name)
def test_a_variant_differs_from_its_task_in_what_it_is_trained_on(task: Task) -> None:
    whole = tasks.get(task.variant_of)
    assert task.answers == whole.answers == whole.name
    assert replace(task, name=whole.name, train=whole.train, variant_of="") == whole
    assert task.train != whole.train


def test_the_pairs_to_judge_contrast_on_come_with_the_package(tmp_path: Path) -> None:
    task = tasks.get("contrast")
    pairs = task.dev.read(tmp_path)
    assert len(pairs) > 1_500
    assert {one.label for one in pairs} == {0, 1, 2}
    assert all(first != second for first, second in (one.texts for one in pairs))
    with pytest.raises(DataMissing, match=r"contrast/train\.jsonl.*python -m tools contrast"):
        task.train[0].read(tmp_path)


def test_a_shipped_card_names_no_variant() -> None:
    for card in BUNDLES.glob("*/card.json"):
        name = json.loads(card.read_text())["task"]
        assert tasks.get(name).answers == name


def test_pairs_without_a_label_are_made_of_labelled_ones() -> None:
    """Hypotheses of one premise with each other, and a premise with those of its nearest."""
    answers = ["Someone eats.", "He cooks.", "A dog."]
    pairs = [Example((EATS, one), 0) for one in answers]
    pairs += [Example((EATS, answers[1]), 2), Example(("A dog.", "A cat."), 2)]
    expected = [Example((a, b), UNLABELLED) for a in answers for b in answers if a != b]
    assert hypotheses(pairs) == expected

    read = ["a red boat", "two dogs bark", "the boat sank", "red wine"]
    assert nearest(read, 2) == [[2, 3], [], [0], [0]]  # by the rarest words
    pairs = [Example((BOAT, "it floats"), 0), Example((BOAT, "it sank"), 2)]
    pairs += [Example((WAITS, "it floats"), 0), Example((WAITS, "someone rows"), 1)]
    pairs.append(Example(("two dogs bark", "noise"), 0))
    assert mined(pairs, 1) == [
        Example((BOAT, "someone rows"), UNLABELLED),
        Example((WAITS, "it sank"), UNLABELLED),
    ]


@needs_data
def test_the_sets_of_equal_sentences_hold_as_many_pairs_as_their_notes_say() -> None:
    for source, number in ((identity.TRAIN, 30_000), (identity.DEV, 1_500)):
        assert source.note.startswith(f"{number:,} ")
        assert len(source.read(DATA)) == number


def test_a_text_is_cut_into_sentences() -> None:
    text = 'It is 3.5 m. "Is it?" she said<br /><br />Then they left ... e.g. home! ' + "Far " * 41
    assert sentences(text) == ["It is 3.5 m.", '"Is it?" she said', "Then they left ... e.g. home!"]


def test_embed_reads_no_sentence_that_it_is_judged_on(tmp_path: Path) -> None:
    read = ["A dog.", "The camera is good. It is small.", "It is small.", "A man."]
    rows = [{"premise": text, "hypothesis": read[0], "label": "neutral"} for text in read]
    dev = {"a": "A dog.", "b": "A man.", "score": 2.5}
    conj = {"nli_conj/train_adversarial.jsonl": lines(*rows)}
    write(tmp_path, {"stsb/dev.jsonl": lines(dev), **conj})
    task = tasks.get("embed")
    (source,) = (source for source in task.train if source.name == "nli_conj")
    found = [one.texts for one in source.read(tmp_path)]
    assert found == TIMES * [("The camera is good.",), ("It is small.",)]
    assert task.dev.read(tmp_path) == [Example(("A dog.", "A man."), 2.5)]


@pytest.fixture
def broad(tmp_path: Path) -> Path:
    """A data folder of broad texts, some of which are judged, in another spelling."""
    many = [{"text": f"Sentence {i} of a document about whales and harbours."} for i in range(40)]
    judged = [{"a": "is it judged", "b": "A judged passage. books is short."}]
    files: dict[str, Sequence[Mapping[str, object]]] = {
        **{f"text/{kind}/many": many for kind in broad_text.KINDS},
        **{f"text/{kind}/few": [{"text": f"{kind} is Short."}] for kind in broad_text.KINDS},
        **{f"text/pairs/{name}": judged for name in ("wiki_split", *held_out.PAIRS)},
        "text/pairs/natural": [{"a": "what is a whale", "b": "A whale is a large animal."}],
        "stsb/dev": [{"a": "Captions is short", "b": "It rains.", "score": 1.0}],
    }
    zipped = {name: gzip.compress(lines(*rows).encode()) for name, rows in files.items()}
    write(tmp_path, {f"{name}.jsonl.gz": content for name, content in zipped.items()})
    held_out.keys.cache_clear()
    return tmp_path


def learned(name: str, data: Path) -> list[str]:
    source = next(one for one in reversed(broad_text.sources()) if one.name == name)
    return [one.texts[0] for one in source.read(data)]


def test_broad_texts_are_balanced_and_none_is_judged_however_it_is_written(
    broad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broad_text, "SENTENCES", 2)  # a file in turn
    read = {source.name: source.read(broad) for source in broad_text.sources()[:4]}
    first = {name: {one.texts[0] for one in found} for name, found in read.items()}
    for kind in ("books", "captions"):
        assert f"{kind} is Short." not in first[f"text/{kind}"]
    assert "commonsense is Short." in first["text/commonsense"]
    assert set(learned("text/pairs", broad)) == {"what is a whale", "A whale is a large animal."}
    for file in (broad / "text/recipes").iterdir():
        file.unlink()
    with pytest.raises(DataMissing, match="recipes holds no file"):
        learned("text/recipes", broad)


def test_passages_hold_sentences_in_order_and_keywords_their_words(broad: Path) -> None:
    texts = [f"S{i} has five words here." for i in range(50)]
    passages = list(broad_text._windows(texts, random.Random(1)))
    assert " ".join(passages) == " ".join(texts)
    assert max(len(one.split()) for one in passages) <= 40
    found = [one.lower().split() for one in learned("text", broad)]
    assert found
    assert all(2 <= len(words) <= 8 for words in found)
    assert not {"of", "and", "is"} & {word for words in found for word in words}


def source(*texts: str) -> Source:
    rows = [Example(tuple(text.split("/")), 0) for text in texts]
    return Source("toys", "CC0-1.0", "whole", lambda _: rows)


def test_test_rows_that_training_has_seen_are_counted_without_case_and_white_space() -> None:
    pairs = source("A dog./A cat.", "a  Dog./a cat."), source("Two kids./A kid.")
    test = source("a dog./a cat.", "a cat./a dog.", "he left./she left.", "two kids/a kid")
    dev = source("He left./She left.")
    task = Task("toys", "nli", NLI_LABELS, train=pairs, dev=dev, test=test)
    counts = {"rows": 4, "test_seen": 2, "letters_seen": 3, "train_in_test": 3}
    assert overlaps.overlap(task, Path()) == counts
    dev, never = source("a dog./a cat.", "A Kid/two kids"), source("never/read")
    task = Task("toys", "embedding", (), train=(source("A dog.", "a kid"),), dev=dev, test=never)
    counts = {"rows": 4, "test_seen": 2, "letters_seen": 2, "train_in_test": 2}
    assert overlaps.overlap(task, Path()) == counts
