"""Three sets of sentences in SentEval's layout, one file a label, or as JSON lines `NAME/all.jsonl`.

CR (Hu and Liu 2004): a sentence of a customer's review praises the product, or does not. MPQA (Wiebe et al. 2005): the
polarity of a phrase. SUBJ (Pang and Lee 2004): whether a sentence gives an opinion or tells the plot; it is also read
from the official `plot.tok.gt9.5000` and `quote.tok.gt9.5000` (Windows-1252).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from heedful.training.data_folder import find, lines
from heedful.training.tasks.base import Example
from tools.tasks import nli, sst
from tools.tasks.folds import ten_folds
from tools.tasks.labelled import UNSTATED, examples, json_lines

BACKGROUND = (nli.MNLI_TRAIN, nli.SNLI_TRAIN, sst.REVIEWS)


@dataclass(frozen=True, slots=True)
class Sentences:
    """A dataset: its file for each label in the task's order, and the official files where they differ."""

    name: str
    note: str
    files: Mapping[str, str]
    official: Mapping[str, str]
    encoding: str = "utf-8"

    def read(self, data: Path) -> list[Example]:
        """Every example. Raises DataMissing, DataError."""
        official = all((data / file).is_file() for file in self.official.values())
        labels = tuple(self.files)
        (label, first), *others = (self.official if official else self.files).items()
        path = find(data, (first, f"{self.name}/all.jsonl"), dataset=self.name)
        if ".jsonl" in path.name:
            return examples(path, json_lines(path), labels)
        paths = [(label, path)]
        paths += [(name, find(data, (file,), dataset=self.name)) for name, file in others]
        rows = chain.from_iterable(_one_label(file, name, self.encoding) for name, file in paths)
        return examples(path, rows, labels)


def _one_label(path: Path, label: str, encoding: str) -> Iterator[tuple[str, str]]:
    """(label, text) of each line of a file whose texts all have this label."""
    for line in lines(path, encoding):
        yield label, line


_CR = {"negative": "CR/custrev.neg", "positive": "CR/custrev.pos"}
_MPQA = {"negative": "MPQA/mpqa.neg", "positive": "MPQA/mpqa.pos"}
_REPEATED = (
    "whole; 2,363 of 10,603 phrases repeat another, so that three tenths of a fold's test phrases stand in its "
    "train or dev, as in the papers"
)
CR = Sentences("cr", "whole; 6 sentences stand there twice", _CR, _CR)
MPQA = Sentences("mpqa", _REPEATED, _MPQA, _MPQA)
SUBJ = Sentences(
    "subj",
    "whole",
    {"objective": "SUBJ/subj.objective", "subjective": "SUBJ/subj.subjective"},
    {"objective": "plot.tok.gt9.5000", "subjective": "quote.tok.gt9.5000"},
    "cp1252",
)
TASKS = tuple(
    task
    for dataset in (CR, MPQA, SUBJ)
    for task in ten_folds(
        dataset.name,
        tuple(dataset.files),
        UNSTATED,
        dataset.note,
        dataset.read,
        background=BACKGROUND,
    )
)
