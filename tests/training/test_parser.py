"""What the parser is trained on and judged by; its full training is a command, not a test."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from rich.console import Console
from spacy.tokens import Doc

from heedful.text.errors import ParserError
from heedful.text.structure import check_heads
from heedful.training import parser, soft_trees, tree_teacher, treebank
from heedful.training.errors import DataMissing
from heedful.training.tree_teacher import UNKNOWN
from tests.builders import BuiltParser

CONLLU = """\
# text = Kids can't wash.
1\tKids\tkid\tNOUN\tNNS\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\twash\twash\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# text = Big alot dog
1\tBig\tbig\tADJ\tJJ\t_\t4\tamod\t_\t_
2\ta\ta\tDET\tDT\t_\t3\tdet\t_\tSpaceAfter=No
3\tlot\tlot\tNOUN\tNN\t_\t4\tnmod\t_\t_
4\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_

"""


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    data = tmp_path_factory.mktemp("ud")
    (data / "en_ewt-ud-train.conllu").write_text(CONLLU)
    return treebank.sentences(data, "train")


def test_a_sentence_reads_as_its_text(gold: list[Doc]) -> None:
    assert [doc.text.strip() for doc in gold] == ["Kids can't wash.", "Big alot dog"]
    with pytest.raises(DataMissing, match="UD_English-EWT"):
        treebank.sentences(Path("nowhere"), "train")


def test_grouping_keeps_every_sentence_and_its_tree(gold: list[Doc]) -> None:
    many = gold * 50
    joined = treebank.grouped(many, seed=1)
    assert len(joined) < len(many)
    assert [t.text for doc in joined for t in doc] == [t.text for doc in many for t in doc]
    heads = [token.head.i - token.i for doc in joined for token in doc]
    assert heads == [token.head.i - token.i for doc in many for token in doc]
    lengths = [len(doc) for doc in joined]
    assert lengths == [len(doc) for doc in treebank.grouped(many, seed=1)]
    assert lengths != [len(doc) for doc in treebank.grouped(many, seed=2)]


def test_heads_move_to_spacys_tokens(gold: list[Doc]) -> None:
    plain, joined = tree_teacher.aligned(spacy.blank("en"), gold)
    assert plain.words == ["Kids", "ca", "n't", "wash", "."]
    assert plain.heads == [4, 4, 4, 0, 4]
    assert joined.words == ["Big", "alot", "dog"]
    assert joined.heads == [3, UNKNOWN, 0]


def test_the_teacher_learns_and_writes_trees(gold: list[Doc]) -> None:
    nlp = spacy.blank("en")
    sentences = tree_teacher.aligned(nlp, gold)
    teacher = tree_teacher.train([sentences] * 60, seed=1)
    with torch.inference_mode():
        _, arcs = teacher([sentence.words for sentence in sentences])
    for row, sentence in enumerate(sentences):
        best = arcs[row, 1:].argmax(-1).tolist()[: len(sentence.words)]
        known = [(a, b) for a, b in zip(best, sentence.heads, strict=True) if b != UNKNOWN]
        assert all(found == right for found, right in known)
        assert all(head != i + 1 for i, head in enumerate(best))
    (doc,) = soft_trees.annotate(teacher, nlp, ["Kids can't wash.", "a  b", ""])
    assert [token.head.i for token in doc] == [3, 3, 3, 3, 3]
    assert [token.dep_ for token in doc] == ["nsubj", "aux", "advmod", "ROOT", "punct"]
    check_heads(np.array([token.head.i for token in doc]))


def test_a_resumed_teacher_is_the_unbroken_one(gold: list[Doc], tmp_path: Path) -> None:
    plans = [tree_teacher.aligned(spacy.blank("en"), gold)] * 2
    file, broken = tmp_path / "teacher.partly.pt", tmp_path / "broken.pt"

    class KeptAfterOneEpoch(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            if str(objects[0]).startswith("teacher, epoch 2"):
                os.link(file, broken)

    whole = tree_teacher.train(
        plans, seed=1, dev=plans[0], console=KeptAfterOneEpoch(), file=file
    ).state_dict()
    resumed = tree_teacher.train(plans, seed=1, file=broken).state_dict()
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name


def test_as_many_plain_texts_are_drawn_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soft_trees, "TEXTS", {"sst5/train.jsonl": 8, "trec/train.jsonl": 2})
    for name in ("sst5", "trec"):
        (tmp_path / name).mkdir()
        lines = [json.dumps({"text": f"{name} {i}"}) for i in range(20)]
        (tmp_path / name / "train.jsonl").write_text("\n".join(lines))
    drawn = soft_trees.plain_texts(tmp_path, seed=1)
    assert [sum(text.startswith(name) for text in drawn) for name in ("sst5", "trec")] == [8, 2]
    assert len(soft_trees.plain_texts(tmp_path, seed=1, count=5)) == 5


def test_scores_count_words_but_no_punctuation(pipeline: BuiltParser) -> None:
    nlp = spacy.load(pipeline.folder)
    parsed = nlp("Two kids wash their hands")
    words, heads = [t.text for t in parsed], [t.head.i for t in parsed]
    deps = [t.dep_ for t in parsed]
    assert "punct" not in deps

    def score(heads: list[int], deps: list[str]) -> dict[str, float]:
        gold = Doc(nlp.vocab, words=words, spaces=[True] * 4 + [False], heads=heads, deps=deps)
        return parser.evaluate(nlp, [gold])

    assert score(heads, deps) == {"uas": 1.0, "las": 1.0}
    relabelled = ["dep" if i == 0 else name for i, name in enumerate(deps)]
    assert score(heads, relabelled) == {"uas": 1.0, "las": pytest.approx(0.8)}
    without = ["punct" if i == 4 else name for i, name in enumerate(deps)]
    assert score(heads, without)["uas"] == pytest.approx(8 / 9)  # 4 right, of 5 found and 4 asked


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "parser").mkdir()
    (tmp_path / "parser" / "thesis.txt").write_text("mine")
    with pytest.raises(ParserError, match="no spaCy pipeline"):
        parser.train_parser(
            tmp_path, tmp_path / "parser", seed=1, cache=tmp_path / "c", console=Console()
        )
    assert (tmp_path / "parser" / "thesis.txt").read_text() == "mine"
