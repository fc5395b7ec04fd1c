"""Trees: their shapes in JSON and CoNLL-U, and what is left of one without some tokens."""

from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.displacy import parse_deps
from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.arrays import Ints
from heedful.text.structure import check_heads, without
from heedful.text.trees import build, from_conllu, from_displacy, to_conllu, to_displacy
from tests.forests import BALLGAME, BALLGAME_HEADS, forests

LABELS = np.array(["nummod", "nsubj", "case", "det", "nmod", "ROOT", "nmod:poss", "obj"])


def test_displacys_structure_is_spacys_own() -> None:
    doc = Doc(Vocab(), BALLGAME, heads=BALLGAME_HEADS.tolist(), deps=LABELS.tolist())
    expected = parse_deps(doc)
    displacy = to_displacy(build(BALLGAME, BALLGAME_HEADS, LABELS.tolist(), [True] * 8))
    assert [word["text"] for word in displacy["words"]] == BALLGAME
    place = itemgetter("start", "end")
    assert sorted(displacy["arcs"], key=place) == sorted(expected["arcs"], key=place)


@given(forests(), st.data())
def test_both_shapes_can_be_read_again(heads: Ints, data: st.DataObject) -> None:
    tokens = [f"w{i}" for i in range(len(heads))]
    spaces = data.draw(st.lists(st.booleans(), min_size=len(heads), max_size=len(heads)))
    deps = ["ROOT" if head == i else "dep" for i, head in enumerate(heads)]
    parse = build(tokens, heads, deps, spaces)
    for i, token in enumerate(tokens):
        assert parse.text[parse.starts[i] : parse.stops[i]] == token
    for again in (from_displacy(to_displacy(parse)), from_conllu(to_conllu(parse))):
        assert again.tokens == parse.tokens
        np.testing.assert_array_equal(again.heads, heads)
        assert again.deps == parse.deps
    assert from_conllu(to_conllu(parse)).starts == parse.starts


@pytest.mark.parametrize(
    ("arcs", "reason"),
    [
        ([(1, 1)], r"arcs\[0\] goes from 1 to 1"),
        ([(0, 1), (2, 1)], r"arcs\[1\] goes from 2 to 1"),
        ([(0, 3)], r"arcs\[0\] goes from 0 to 3: .* the 3 words"),
        ([(-1, 1)], r"arcs\[0\] goes from -1 to 1"),
        ([(0, 1), (0, 2)], r"arcs\[1\] is the second arc that points to word 0"),
    ],
)
def test_arcs_that_are_no_tree_are_refused(arcs: list[tuple[int, int]], reason: str) -> None:
    words = [{"text": text} for text in ("two", "kids", "wash")]
    rows = [{"start": start, "end": end, "label": "dep", "dir": "left"} for start, end in arcs]
    with pytest.raises(ValueError, match=reason):
        from_displacy({"words": words, "arcs": rows})


def test_conllu_as_the_treebanks_write_it() -> None:
    content = (
        "# sent_id = 1\n# text = Don't!\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "1\tDo\tdo\tAUX\t_\t_\t0\troot\t_\tSpaceAfter=No\n2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_\n"
        "2.1\tgo\t_\t_\t_\t_\t_\t_\t_\t_\n3\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_\n\n"
        "1\tNo\tno\tINTJ\t_\t_\t0\troot\t_\t_\n"
    )
    parse = from_conllu(content)
    assert parse.text == "Don't ! No"
    assert parse.tokens == ("Do", "n't", "!", "No")
    assert parse.heads.tolist() == [0, 0, 0, 3]
    assert parse.deps == ("ROOT", "advmod", "punct", "ROOT")
    assert from_conllu(f"\ufeff{content}").tokens == parse.tokens
    lines = to_conllu(parse).splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# text = Don't !", "# text = No"]
    assert lines[1] == "1\tDo\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No"
    parse = build(["so", "it"], np.array([1, 1]), ["", "ROOT"], [True, True])
    assert to_conllu(parse).splitlines()[1].split("\t")[6:8] == ["2", "_"]  # no column is empty


LINE = "1\tdog\t_\t_\t_\t_\t0\troot\t_\t_"
SECOND = LINE.replace("\t0\t", "\t2\t")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the tree has no token"),
        ("# text = dog\n", "the tree has no token"),
        ("1 dog", "line 1 has 1 columns"),
        (LINE.replace("1", "2", 1), "line 1: ID must be 1"),
        (LINE.replace("\t0\t", "\t-1\t"), "line 1: HEAD must be a number"),
        (LINE.replace("\t0\t", "\t٣\t"), "line 1: HEAD must be a number"),
        (SECOND, "line 1: HEAD is 2, but the sentence has words 1 to 1"),
        (f"{SECOND}\n\n{LINE}", "line 1: HEAD is 2, but the sentence has words 1 to 1"),
        (f"{LINE}\n\n{LINE.replace('0', '1')}", "line 3: HEAD is the word's own ID"),
        (LINE.replace("root", "a b"), "line 1: DEPREL holds white space"),
        (LINE.replace("dog", " "), "token 0 is ' '"),
        (f"{SECOND}\n{SECOND.replace('2', '1').replace('1', '2', 1)}", "the heads hold a cycle"),
    ],
)
def test_what_is_no_conllu_is_refused_by_line(content: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_conllu(content)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_what_passes_is_a_forest_and_what_does_not_is_none(values: list[int]) -> None:
    heads = np.array([value % len(values) for value in values])

    def ends(token: int) -> bool:
        for _ in heads:
            token = int(heads[token])
        return bool(heads[token] == token)

    if all(map(ends, range(len(heads)))):
        check_heads(heads)
    else:
        with pytest.raises(ValueError, match="cycle"):
            check_heads(heads)
    for outside in (-1, len(heads)):
        with pytest.raises(ValueError, match="a head lies outside"):
            check_heads(np.append(heads[1:], outside))


@given(forests(), st.data())
def test_without_some_tokens_each_hangs_under_the_nearest_that_is_left(
    heads: Ints, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(heads) - 1), max_size=len(heads) - 1))
    left = [i for i in range(len(heads)) if i not in gone]
    expected = []
    for token in left:
        head = int(heads[token])
        while head in gone and heads[head] != head:
            head = int(heads[head])
        expected.append(left.index(token if head in gone else head))
    assert without(heads, ~np.isin(np.arange(len(heads)), sorted(gone))).tolist() == expected
