"""Pairs of equal sentences."""

from heedful.text.kinds import NLI_LABELS
from tests.datasets import DATA, needs_data
from tools.tasks import identity


def test_each_text_once_with_itself() -> None:
    found = identity.pairs(["a", "b", "a", "c"], 2)
    assert len({one.texts for one in found}) == 2
    assert all(one.texts[0] == one.texts[1] and one.trusted for one in found)
    assert {NLI_LABELS[int(one.label)] for one in found} == {"entailment"}
    assert identity.pairs(["c", "b", "a"], 9) == identity.pairs(["a", "b", "c"], 9)


@needs_data
def test_the_sets_hold_as_many_pairs_as_their_notes_say() -> None:
    for source, number in ((identity.TRAIN, 30_000), (identity.DEV, 1_500)):
        assert source.note.startswith(f"{number:,} ")
        assert len(source.read(DATA)) == number
