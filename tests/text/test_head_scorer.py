"""The component in a pipeline: files, batches, threads of words; what its graphs give is tests/export's."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language

from heedful.text.errors import ParserError
from heedful.text.head_scorer import CELLS, LONGER, alike
from heedful.text.parse import ParseJob, Parser
from heedful.text.structure import check_heads
from heedful.text.word_features import FEATURES, PAD, UNKNOWN, WordFeatures, pad
from tests.head_scorer import KNOWN, LABELS, build_head_scorer

SENTENCE = "Two kids wash their hands . The dog is not good"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_head_scorer(tmp_path_factory.mktemp("heads") / "parser")


@pytest.fixture(scope="module")
def nlp(folder: Path) -> Language:
    return spacy.load(folder)


words = st.lists(st.sampled_from([*KNOWN, "unheard", "Ünïcode", "12-04", "!"]), max_size=30)


def trees(nlp: Language, texts: list[str]) -> list[tuple[list[int], list[str]]]:
    return [
        ([token.head.i for token in doc], [token.dep_ for token in doc]) for doc in nlp.pipe(texts)
    ]


@settings(deadline=None, max_examples=40)
@given(st.lists(words, min_size=1, max_size=6))
def test_a_tree_is_the_same_in_any_company(nlp: Language, texts: list[list[str]]) -> None:
    joined = [" ".join(one) for one in texts]
    assert trees(nlp, joined) == [trees(nlp, [text])[0] for text in joined]


@settings(deadline=None, max_examples=40)
@given(words)
def test_every_text_gets_a_tree_with_its_labels(nlp: Language, text: list[str]) -> None:
    doc = nlp(" ".join(text))
    heads = np.array([token.head.i for token in doc], np.int64)
    check_heads(heads)
    for token in doc:
        assert (token.dep_ == "ROOT") == (token.head.i == token.i)
        assert token.dep_ in (*LABELS, "ROOT")
    assert not len(doc) or doc.has_annotation("DEP")


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_texts_run_beside_texts_of_like_length(lengths: list[int]) -> None:
    groups = alike(lengths)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    for group in groups:
        sizes = [lengths[i] for i in group]
        assert max(sizes) <= LONGER * min(sizes) + 1
        assert len(group) == 1 or len(group) * max(sizes) <= CELLS


def test_several_batches_and_an_empty_text(nlp: Language) -> None:
    texts = [" ".join(SENTENCE.split()[: i % 12]) for i in range(50)]
    docs = list(nlp.pipe(texts, batch_size=7))
    assert [doc.text for doc in docs] == texts
    assert trees(nlp, texts) == [trees(nlp, [text])[0] for text in texts]


def test_what_is_written_is_what_was_read(nlp: Language, folder: Path, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "again")
    for file in (folder / "parser").iterdir():
        assert (tmp_path / "again" / "parser" / file.name).read_bytes() == file.read_bytes()
    again = spacy.load(tmp_path / "again")
    assert trees(again, [SENTENCE]) == trees(nlp, [SENTENCE])
    assert again.pipe_labels["parser"] == [*LABELS, "ROOT"]


def test_the_parser_serves_it(folder: Path) -> None:
    parser = Parser.load(folder)
    assert parser.name == "en_tiny_heads"
    (parse,) = parser.parse([ParseJob(SENTENCE, 256, tree=True)])
    check_heads(parse.heads)
    assert set(parse.deps) <= {*LABELS, "ROOT"}


def test_memory_does_not_grow_with_the_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch's words leave the vocabulary with it (spaCy's memory zone), the labels stay."""
    monkeypatch.setattr("heedful.text.reading.KEPT_WORDS", 0)
    parser = Parser.load(folder)
    (first,) = parser.parse([ParseJob(SENTENCE, 256, tree=True)])
    before = len(parser._nlp.vocab.strings)
    for i in range(20):
        parser.parse([ParseJob(f"{SENTENCE} unheard{i} of{i}", 256, tree=True)])
    assert len(parser._nlp.vocab.strings) == before
    (again,) = parser.parse([ParseJob(SENTENCE, 256, tree=True)])
    assert (again.heads.tolist(), again.deps) == (first.heads.tolist(), first.deps)


@pytest.mark.parametrize("file", ["scores.onnx", "relations.onnx", "words.bin", "config.json"])
@pytest.mark.parametrize("content", [None, b"", b"\x00garbage\xff{"])
def test_a_broken_component_is_refused(
    folder: Path, tmp_path: Path, file: str, content: bytes | None
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "parser" / file).unlink()
    if content is not None:
        (broken / "parser" / file).write_bytes(content)
    with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
        Parser.load(broken)


def test_a_gpu_that_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(ValueError, match="CUDA did not come up"):
        spacy.load(folder, config={"components": {"parser": {"device": "cuda"}}})


def test_words_are_found_by_their_hash(nlp: Language) -> None:
    doc = nlp.make_doc("kids unheard kids Kids")
    features = WordFeatures(
        np.array([nlp.vocab.strings["hands"], nlp.vocab.strings["kids"]], np.uint64),
        [(50, 1), (10, 2), (20, 3), (10, 4)],
    )
    rows = features([doc])
    assert rows.shape == (4, FEATURES)
    assert rows[:, 0].tolist() == [3, UNKNOWN, 3, UNKNOWN]
    assert rows[0].tolist() == rows[2].tolist()
    assert rows[0, 1:5].tolist() == rows[3, 1:5].tolist()  # of one norm
    assert rows[0, 13:].tolist() != rows[3, 13:].tolist()  # of two shapes
    assert (rows[:, 1:].reshape(4, 4, 4).max((0, 2)) < [50, 10, 20, 10]).all()
    padded = pad(np.concatenate([rows[:1], rows[1:]]), np.array([1, 3]))
    assert padded.shape == (2, 3, FEATURES)
    assert (padded[0, 1:] == PAD).all()
    assert padded[1].tolist() == rows[1:].tolist()
