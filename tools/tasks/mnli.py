"""MultiNLI (Williams et al. 2018). The official test labels are not public: `mnli` has the matched dev split as dev
and the mismatched one as test, `mnli-matched` a part of train as dev and the matched dev split as test;
`mnli-matched-snli` learns from SNLI's pairs too.

Reads the same layouts as `nli`.
"""

from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks.nli import MNLI_LICENCE, MNLI_TRAIN, SNLI_TRAIN, multinli
from tools.tasks.splits import stratified_split

DEV = multinli(
    "dev_matched", "mnli/dev_matched.jsonl", note="whole; 29 train pairs share a premise with it"
)
TEST = multinli(
    "dev_mismatched",
    "mnli/dev_mismatched_sample1000.jsonl",
    note="the official mismatched dev split of 9,832 pairs, or a tokenized sample of 1,000",
)


def _part(number: int) -> Reader:
    """A twentieth of the train pairs (0), or the rest (1); the pairs of one premise stay together."""

    def read(data: Path) -> list[Example]:
        pairs = MNLI_TRAIN.read(data)
        premises = [pair.texts[0] for pair in pairs]
        return stratified_split(pairs, (0.05,), groups=premises)[number]

    return read


HELD = Source("mnli", MNLI_LICENCE, "a twentieth of the train pairs", _part(0))
OTHERS = Source(
    "mnli", MNLI_LICENCE, f"{MNLI_TRAIN.note}, but for the twentieth that is dev", _part(1)
)


def _matched(name: str, *train: Source) -> Task:
    return Task(name=name, kind="nli", labels=NLI_LABELS, train=train, dev=HELD, test=DEV)


TASKS = (
    Task(name="mnli", kind="nli", labels=NLI_LABELS, train=(MNLI_TRAIN,), dev=DEV, test=TEST),
    _matched("mnli-matched", OTHERS),
    _matched("mnli-matched-snli", OTHERS, SNLI_TRAIN),
)
