"""What the shipped models' tasks make of the datasets: nothing that they are judged on is learned."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training import tasks
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import Example, Task
from tests.writing import lines, write, write_rows
from tools.tasks import TASKS, broad_text, everyday_sentiment, held_out, negation, plain_pairs
from tools.tasks.embed import TIMES
from tools.tasks.templates import ENTAILMENT, HERE, SENTIMENT, from_templates

VARIANTS = [task for task in TASKS if task.variant_of]
NLI = dict(zip(NLI_LABELS, range(3), strict=True))
FILES = {
    negation.FILE: ("dev", ENTAILMENT),
    plain_pairs.FILE: ("roles", ENTAILMENT),
    everyday_sentiment.FILE: ("everyday", SENTIMENT),
}


@pytest.mark.parametrize("task", VARIANTS, ids=lambda task: task.name)
def test_a_variant_differs_from_its_task_in_what_it_is_trained_on(task: Task) -> None:
    whole = tasks.get(task.variant_of)
    assert task.answers == whole.answers == whole.name
    assert replace(task, name=whole.name, train=whole.train, variant_of="") == whole
    assert task.train != whole.train


def test_the_pairs_to_judge_contrast_on_are_in_git_and_those_to_learn_are_made(
    tmp_path: Path,
) -> None:
    task = tasks.get("contrast")
    assert {one.label for one in task.dev.read(tmp_path)} == {0, 1, 2}
    with pytest.raises(DataMissing, match=r"contrast/train\.jsonl.*python -m tools contrast"):
        task.train[0].read(tmp_path)


@pytest.mark.parametrize("file", FILES)
def test_sentences_of_dev_share_no_template_and_no_text_with_those_of_train(file: str) -> None:
    section, signs = FILES[file]
    dev, train = (
        from_templates(file, part, number, signs)
        for part, number in ((section, 300), ("train", 3_000))
    )
    assert (len({one.texts for one in dev}), len(train)) == (300, 3_000)
    assert {one.label for one in train} == set(signs.values())
    assert not {one.texts for one in dev} & {one.texts for one in train}
    assert not [one for one in (*dev, *train) if re.search(r"[{}_]", " ".join(one.texts))]
    content = tomllib.loads((HERE / file).read_text("utf-8"))
    if file == plain_pairs.FILE:  # its templates are those of train, with other words
        words = {
            part: {
                word
                for name, text in content[part].items()
                if name not in ("templates", "number", "digits")
                for word in text.split()
            }
            for part in ("train", "roles", "forms")
        }
        assert not words["train"] & (words["roles"] | words["forms"])
        assert {one.label for one in dev} == {NLI["neutral"]}
        return
    templates = [set(content[part]["templates"].splitlines()) for part in ("train", section)]
    assert templates[0] & templates[1] <= {""}


def test_other_spellings_and_longer_premises_keep_the_label() -> None:
    documents = [[f"Sentence {i} of document {j}." for i in range(9)] for j in range(3)]
    pairs = [Example((f"The man is not at home {i}.", "He's away."), i % 3) for i in range(60)]
    result = plain_pairs.spelled(pairs)
    assert len(result) > 40
    for one in result:
        (number,) = re.findall(r"\d+", one.texts[0])
        assert (one.label, one.trusted) == (int(number) % 3, True)
    for one, pair in zip(plain_pairs.in_passages(pairs[:9], documents), pairs, strict=False):
        assert pair.texts[0] in one.texts[0]
        assert (one.texts[1], one.label) == (pair.texts[1], pair.label)
    for one in plain_pairs.passages(documents, 60):
        assert (one.texts[1] in one.texts[0]) == (one.label == NLI["entailment"])


def test_embed_reads_sentences_and_none_that_it_is_judged_on(tmp_path: Path) -> None:
    read = ["A dog.", "It cost 3.5 m.<br />It is small.", "It is small.", "A man."]
    rows = [{"premise": text, "hypothesis": read[0], "label": "neutral"} for text in read]
    dev = {"a": "A dog.", "b": "A man.", "score": 2.5}
    conj = {"nli_conj/train_adversarial.jsonl": lines(*rows)}
    write(tmp_path, {"stsb/dev.jsonl": lines(dev), **conj})
    task = tasks.get("embed")
    (source,) = (source for source in task.train if source.name == "nli_conj")
    found = [one.texts for one in source.read(tmp_path)]
    assert found == TIMES * [("It cost 3.5 m.",), ("It is small.",)]
    assert task.dev.read(tmp_path) == [Example(("A dog.", "A man."), 2.5)]


def test_broad_texts_are_balanced_and_none_is_judged_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [{"text": f"Sentence {i} of a document about whales and harbours."} for i in range(40)]
    judged = [{"a": "is it judged", "b": "A judged passage. books is short."}]
    files: dict[str, Sequence[Mapping[str, object]]] = {
        **{f"text/{kind}/many": many for kind in broad_text.KINDS},
        **{f"text/{kind}/few": [{"text": f"{kind} is Short."}] for kind in broad_text.KINDS},
        **{f"text/pairs/{name}": judged for name in ("wiki_split", *held_out.PAIRS)},
        "text/pairs/natural": [{"a": "what is a whale", "b": "A whale is a large animal."}],
        "stsb/dev": [{"a": "Captions is short", "b": "It rains.", "score": 1.0}],
    }
    write_rows(tmp_path, files)
    held_out.keys.cache_clear()
    monkeypatch.setattr(broad_text, "SENTENCES", 2)  # a file in turn
    *sources, pairs, keywords = broad_text.sources()
    found = {source.name: [one.texts[0] for one in source.read(tmp_path)] for source in sources[:4]}
    for kind in ("books", "captions"):
        assert f"{kind} is Short." not in found[f"text/{kind}"]
    assert "commonsense is Short." in found["text/commonsense"]
    natural = {one.texts[0] for one in pairs.read(tmp_path)}
    assert natural == {"what is a whale", "A whale is a large animal."}
    words = [one.texts[0].lower().split() for one in keywords.read(tmp_path)]
    assert words
    assert all(2 <= len(one) <= 8 and not {"of", "and", "is"} & {*one} for one in words)
    for file in (tmp_path / "text/books").iterdir():
        file.unlink()
    with pytest.raises(DataMissing, match="books holds no file"):
        sources[0].read(tmp_path)
