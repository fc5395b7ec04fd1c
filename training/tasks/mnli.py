"""MultiNLI (Williams et al. 2018). Dev is the matched dev split; the mismatched one is the test split.

The official test labels are not public. Reads the same layouts as `nli`.
"""

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Task
from heedful.training.tasks.nli import MNLI_TRAIN, multinli

DEV = multinli(
    "dev_matched", "mnli/dev_matched.jsonl", note="whole; 29 train pairs share a premise with it"
)
TEST = multinli(
    "dev_mismatched",
    "mnli/dev_mismatched_sample1000.jsonl",
    note="the official mismatched dev split of 9,832 pairs, or a tokenized sample of 1,000",
)
TASKS = (Task(name="mnli", kind="nli", labels=NLI_LABELS, train=(MNLI_TRAIN,), dev=DEV, test=TEST),)
