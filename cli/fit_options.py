"""The options of `heedful fit`, and the files that they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from heedful.training import labelled_texts
from heedful.training.config import Device
from heedful.training.labelled_texts import Reading, Row

VECTORS = "ms-san-nli"

Effort = Literal["quick", "normal", "high"]

File = Annotated[
    Path,
    Argument(
        help="Labelled texts: a .csv, .tsv, .jsonl, .parquet or .xlsx file, or a folder with a folder a label."
    ),
]
Out = Annotated[Path, Option(help="The bundle's folder, bundles/<name>.")]
LabelColumn = Annotated[str, Option(help="Column of the labels.")]
TextColumn = Annotated[str | None, Option(help="Column of the texts; default text.")]
PairColumns = Annotated[
    str | None, Option(help="For pairs of texts: their two columns, as premise,hypothesis.")
]
EffortOption = Annotated[
    Effort, Option(help="quick: linear models; normal, high: encoders are trained too.")
]
Test = Annotated[Path | None, Option(help="Another labelled file, to measure the bundle on.")]
Unlabelled = Annotated[
    Path | None,
    Option(help="Another file with texts in the same column, to learn from without labels."),
]
TeacherOption = Annotated[
    str | None,
    Option(
        "--teacher",
        help="The encoder that labels the texts of --unlabelled: minilm (default), mpnet, the folder of a sentence "
        "encoder, or its name on the hub.",
    ),
]
MultiLabel = Annotated[
    str, Option(help="Texts have several labels: what divides them in a cell, as ';'.")
]
Weighting = Annotated[
    Literal["none", "balanced"], Option(help="balanced: rare classes weigh as much as others.")
]
Abstain = Annotated[
    float | None,
    Option(
        min=0, max=1, help="Target precision: the bundle answers null where it is less confident."
    ),
]
NoHeader = Annotated[
    bool, Option("--no-header", help="The columns have no names: they are 1, 2, ..")
]
DropBlank = Annotated[
    bool, Option("--drop-blank", help="Leave out rows without a text or a label.")
]
DropConflicts = Annotated[
    bool, Option("--drop-conflicts", help="Leave out equal texts of different labels.")
]
Base = Annotated[
    str, Option(help="The embedding bundle whose vectors are used: its name, or its folder.")
]
Parser = Annotated[
    str | None, Option(help="spaCy pipeline, a folder or a package; default that of --base.")
]
Encoder = Annotated[str, Option(help="An encoder to train; `heedful list --encoders` names them.")]
Vectors = Annotated[
    str,
    Option(
        help="Its word vectors: a bundle's name or folder, or a text file of GloVe's or fastText's."
    ),
]
Seed = Annotated[int, Option(help="Seed of the split and of the training.")]
TrainsOn = Annotated[Device, Option("--device", help="Where encoders and --teacher are trained.")]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A file's rows, texts from `columns`, and the rows of `--test`."""

    file: Path
    columns: Sequence[str]
    rows: Sequence[Row]
    test: Sequence[Row] = ()

    @classmethod
    def read(
        cls, file: Path, columns: Sequence[str], label: str, reading: Reading, test: Path | None
    ) -> "Labelled":
        """Raises DataError."""
        rows = labelled_texts.read(file, columns, label, reading)
        held = labelled_texts.read_rows(test, columns, label, reading) if test else ()
        return cls(file, columns, rows, held)
