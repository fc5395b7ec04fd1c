"""The component in a pipeline: files, batches, words; what its graph gives is tests/export's."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language

from heedful.text import arc_parser
from heedful.text.arborescence import best_heads
from heedful.text.arc_parser import FILES, ArcParser, VectorTable
from heedful.text.errors import ParserError
from heedful.text.parse import ParseJob, Parser
from heedful.text.structure import check_heads
from heedful.text.tokenize import Chunk, Tokens

# Its toy is exported here; tests/text/test_parser_load.py reads the shipped one.
pytest.importorskip("torch")

from tests.arc_parser import LABELS, build_arc_parser

SENTENCE = "Two kids can't wash their hands. The dog is not good!!"
WORDS = (
    *("kids", "wash", "their", "hands", "the", "dog", "unheard", "Ünïcode", "12-04", "!"),
    "can't",
)
texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text(max_size=40)
Trees = list[tuple[list[int], list[str]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_arc_parser(tmp_path_factory.mktemp("arcs") / "parser")


@pytest.fixture(scope="module")
def nlp(folder: Path) -> Language:
    return spacy.load(folder)


def component(nlp: Language) -> ArcParser:
    parser = nlp.get_pipe("parser")
    assert isinstance(parser, ArcParser)
    return parser


def trees(nlp: Language, texts: list[str]) -> Trees:
    docs = nlp.pipe(texts)
    return [([token.head.i for token in doc], [token.dep_ for token in doc]) for doc in docs]


def parsed(parser: Parser, *texts: str) -> Trees:
    parses = parser.parse([ParseJob(text, 256, tree=True) for text in texts])
    return [(parse.heads.tolist(), list(parse.deps)) for parse in parses]


@settings(max_examples=30)
@given(st.lists(texts, min_size=1, max_size=6))
def test_every_text_gets_a_tree_which_is_the_same_in_any_company(
    nlp: Language, company: list[str]
) -> None:
    """A tree for each root, and no cycle."""
    assert trees(nlp, company) == [trees(nlp, [text])[0] for text in company]
    for text in company:
        doc = nlp(text)
        assert doc.text == text
        check_heads(np.array([token.head.i for token in doc], np.int64))
        for token in doc:
            assert (token.dep_ == "ROOT") == (token.head.i == token.i)
            assert token.dep_ in LABELS or (token.pos_, token.dep_) == ("SPACE", "dep")
        assert not len(doc) or doc.has_annotation("DEP")


def test_a_cycle_is_broken_into_the_best_tree(nlp: Language) -> None:
    """The random weights leave a cycle in many a text; the answer is the arborescence of the scores."""
    parser, broken = component(nlp), 0
    for n in range(2, 12):
        doc = nlp.make_doc(" ".join(SENTENCE.split()[:n]))
        feeds = parser.prepare([Tokens.of([Chunk.of(doc)])])[1]
        heads, relations, scores, dependents, governors = parser._graph.run(None, feeds)
        best = best_heads(scores, np.array([len(doc)]))[0]
        tree = nlp(doc.text)
        assert [0 if t.head.i == t.i else t.head.i + 1 for t in tree] == best.tolist()
        broken += int((best != heads[0]).any())
        for i, head in enumerate(best):
            if head and head != heads[0, i]:  # its relation is that to its new governor
                pair = dependents[0, i] + governors[0, head - 1]
                assert tree[i].dep_ == LABELS[int(parser._relations(pair[None])[0])]
            elif head:
                assert tree[i].dep_ == LABELS[relations[0, i]]
    assert broken


def test_what_is_written_is_what_was_read(nlp: Language, folder: Path, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path)
    for file in (folder / "parser").iterdir():
        assert (tmp_path / "parser" / file.name).read_bytes() == file.read_bytes()
    again = spacy.load(tmp_path)
    assert trees(again, [SENTENCE]) == trees(nlp, [SENTENCE])
    assert again.pipe_labels["parser"] == [*LABELS]


def test_threads_give_the_same_trees(folder: Path) -> None:
    parser = Parser.load(folder)
    parts = [" ".join(SENTENCE.split()[: 1 + i % 11]) for i in range(40)]
    expected = parsed(parser, *parts)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda _: parsed(parser, *parts), range(6))) == [expected] * 6


def test_memory_does_not_grow_with_the_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch's words leave the vocabulary with it, and a full table of vectors is begun again."""
    monkeypatch.setattr("heedful.text.tokenize.KEPT_WORDS", 0)
    parser = Parser.load(folder)
    first = parsed(parser, SENTENCE)
    before, seen = len(parser.nlp.vocab.strings), component(parser.nlp)._words
    seen._limit = 20
    for i in range(20):
        parsed(parser, f"{SENTENCE} unheard{i} of{i}")
        assert len(seen) <= 20
    assert len(parser.nlp.vocab.strings) == before
    assert parsed(parser, SENTENCE) == first


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("content", [None, b"", b"\x00garbage\xff{", b"{}"])
def test_a_broken_component_is_refused(
    folder: Path, tmp_path: Path, file: str, content: bytes | None
) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken") / "parser" / file
    broken.unlink()
    if content is not None:
        broken.write_bytes(content)
    with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
        Parser.load(tmp_path / "broken")


def test_a_text_of_more_words_than_the_table_holds(nlp: Language) -> None:
    vectors = component(nlp)._words._vectors
    text = Tokens.of([Chunk.of(nlp.make_doc(" ".join(f"word{i} again" for i in range(30))))])
    large, small = VectorTable(vectors), VectorTable(vectors, limit=4)
    expected, places = large([text])
    for _ in range(2):
        rows, numbers = small([text])
        assert len(small) <= 4
        np.testing.assert_array_equal(rows[numbers], expected[places])
    np.testing.assert_array_equal(small._rows[0], large._rows[0])


def test_angles_grow_with_the_texts(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = component(nlp)
    monkeypatch.setattr(parser, "_rotary_table", arc_parser.rotary_table(2, parser._speeds))
    assert trees(nlp, [SENTENCE]) == trees(spacy.load(nlp.path), [SENTENCE])
    assert len(parser._rotary_table[0]) >= len(nlp.make_doc(SENTENCE))
