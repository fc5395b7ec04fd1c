"""The best tree, and the component in a pipeline; what its graph gives is test_parser.py of tests/tools."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
import spacy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from spacy.language import Language

from heedful.text.arborescence import best_heads
from heedful.text.arc_parser import FILES, ArcParser, VectorTable
from heedful.text.arrays import Doubles
from heedful.text.errors import ParserError
from heedful.text.parse import Parser, fingerprint
from heedful.text.structure import check_heads
from heedful.text.tokenize import Chunk, Tokens
from tests.arc_parser import LABELS, build_arc_parser
from tests.builders import BuiltParser

SENTENCE = "Two kids can't wash their hands. The dog is not good!!"
WORDS = (
    *("kids", "wash", "their", "hands", "the", "dog", "unheard", "Ünïcode", "12-04", "!"),
    "can't",
)
texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text(max_size=40)
Trees = list[tuple[list[int], list[str]]]


def scores(longest: int) -> st.SearchStrategy[Doubles]:
    """(L, 1 + L) of coarse values: ties and cycles are common."""
    values = st.floats(-20, 20, width=16)
    return st.integers(1, longest).flatmap(lambda n: arrays(float, (n, 1 + n), elements=values))


@settings(max_examples=60)
@given(scores(24))
@example(np.random.default_rng(1).normal(size=(64, 65)))  # with cycles within cycles
def test_networkx_finds_no_better_tree(values: Doubles) -> None:
    words = np.arange(len(values))
    values[words, 1 + words] = -1e4  # as the graph gives them: no word governs itself
    graph = networkx.DiGraph()
    for word, head in product(words.tolist(), range(len(values) + 1)):
        if head != word + 1:
            graph.add_edge(head, word + 1, weight=values[word, head])
    tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
    expected = sum(data["weight"] for _, _, data in tree.edges(data=True))
    padded = np.pad(values, (0, 2), constant_values=-1e4)
    padded[len(values) :, 1] = 0  # padding would take the first word
    heads, padding = np.split(best_heads(padded[None], np.array([len(values)]))[0], [len(values)])
    check_heads(np.where(heads == 0, words, heads - 1))  # 0 is the root
    assert values[words, heads].sum() == pytest.approx(expected)
    assert not padding.any()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_arc_parser(tmp_path_factory.mktemp("arcs") / "parser")


@pytest.fixture(scope="module")
def nlp(folder: Path) -> Language:
    return spacy.load(folder)


@pytest.fixture
def component(nlp: Language) -> ArcParser:
    parser = nlp.get_pipe("parser")
    assert isinstance(parser, ArcParser)
    return parser


def trees(nlp: Language, texts: list[str]) -> Trees:
    docs = nlp.pipe(texts)
    return [([token.head.i for token in doc], [token.dep_ for token in doc]) for doc in docs]


def parsed(parser: Parser, *texts: str) -> Trees:
    parses = parser.parse(texts, 256, tree=True)
    return [(parse.heads.tolist(), list(parse.deps)) for parse in parses]


def tokens_of(nlp: Language, text: str) -> Tokens:
    return Tokens.of([Chunk.of(nlp.make_doc(text))])


@settings(max_examples=30)
@given(st.lists(texts, min_size=1, max_size=6))
# The second is longer than any before: more angles are worked out.
@example(["two kids", "their unheard dog " * 30])
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


def test_a_cycle_is_broken_into_the_best_tree(nlp: Language, component: ArcParser) -> None:
    """The random weights leave a cycle in many a text; the answer is the arborescence of the scores."""
    broken = 0
    for n in range(2, 12):
        text = " ".join(SENTENCE.split()[:n])
        feeds = component.prepare([tokens_of(nlp, text)])[1]
        heads, relations, scores, dependents, governors = component._graph.run(None, feeds)
        tree = nlp(text)
        best = best_heads(scores, np.array([len(tree)]))[0]
        assert [0 if t.head.i == t.i else t.head.i + 1 for t in tree] == best.tolist()
        broken += int((best != heads[0]).any())
        for i, head in enumerate(best):
            if head and head != heads[0, i]:  # its relation is that to its new governor
                pair = dependents[0, i] + governors[0, head - 1]
                assert tree[i].dep_ == LABELS[int(component._relations(pair[None])[0])]
            elif head:
                assert tree[i].dep_ == LABELS[relations[0, i]]
    assert broken


def test_threads_give_the_same_trees(folder: Path) -> None:
    parser = Parser.load(folder)
    parts = [" ".join(SENTENCE.split()[: 1 + i % 11]) for i in range(40)]
    expected = parsed(parser, *parts)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda _: parsed(parser, *parts), range(6))) == [expected] * 6


def test_a_full_table_of_words_is_begun_again_and_a_text_may_have_more(
    nlp: Language, component: ArcParser
) -> None:
    large, small = (VectorTable(component._words._vectors, limit=limit) for limit in (1000, 4))
    short = [f"word{i} again word{i + 1}" for i in range(5)]
    for text in (*short, " ".join(short), *short):
        tokens = [tokens_of(nlp, text)]
        (expected, places), (rows, numbers) = large(tokens), small(tokens)
        np.testing.assert_array_equal(rows[numbers], expected[places])
        assert len(small._places) <= 4


def test_what_is_no_pipeline_is_named_with_the_remedy(tmp_path: Path) -> None:
    remedy, blank = "name a folder or an installed package", tmp_path / "blank"
    spacy.blank("en").to_disk(blank)
    for missing, reason in (
        (tmp_path / "nothing", f"{tmp_path}/nothing.*{remedy}"),
        ("en_no_such_pipeline", f"en_no_such_pipeline.*{remedy}"),
        (tmp_path, "cannot load the spaCy pipeline"),
        (blank, "has no dependency parser"),
    ):
        with pytest.raises(ParserError, match=reason):
            Parser.load(missing)


OURS = [f"parser/{file}" for file in FILES]
SPACYS = ("config.cfg", "meta.json", "parser/model", "parser/cfg", "vocab/strings.json")


@pytest.mark.parametrize("file", [*OURS, *SPACYS])
def test_a_broken_pipeline_is_refused(
    folder: Path, pipeline: BuiltParser, tmp_path: Path, file: str
) -> None:
    """A pipeline of our parser, or of spaCy's."""
    copy = shutil.copytree(folder if file in OURS else pipeline.folder, tmp_path / "broken")
    for content in (b"", b"\x00garbage\xff{", None, *[b"{}"] * (file in OURS)):
        (copy / file).unlink()
        if content is not None:
            (copy / file).write_bytes(content)
        with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
            Parser.load(copy)
        (copy / file).touch()


def test_what_is_not_needed_is_not_run(
    pipeline: BuiltParser, parser: Parser, tmp_path: Path
) -> None:
    nlp = spacy.load(pipeline.folder)
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("merge_noun_chunks")  # would join tokens
    nlp.to_disk(tmp_path)
    texts = ["Two kids wash their hands."]
    (more,) = Parser.load(tmp_path).parse(texts, 256, tree=True)
    (plain,) = parser.parse(texts, 256, tree=True)
    assert more.tokens == plain.tokens
    assert more.heads.tolist() == plain.heads.tolist()


def test_the_fingerprint_is_of_names_and_bytes_alone(
    pipeline: BuiltParser, parser: Parser, tmp_path: Path
) -> None:
    assert (parser.name, parser.fingerprint) == (pipeline.name, pipeline.fingerprint)
    assert len(parser.fingerprint) == 64
    copy = shutil.copytree(pipeline.folder, tmp_path / "elsewhere")
    for file in sorted(path for path in copy.rglob("*") if path.is_file()):
        assert fingerprint(copy) == pipeline.fingerprint
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        assert fingerprint(copy) != pipeline.fingerprint
        file.write_bytes(content)
    (copy / "meta.json").rename(copy / "meta2.json")
    assert fingerprint(copy) != pipeline.fingerprint
