"""tune: an embedding's bundle and a user's pairs of texts -> a bundle whose vectors find a text's partner.

torch is imported once the pairs have been read.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import DATA, RUNS, AllThreads, Data, Delimiter, Encoding, Runs, TextsFormat
from heedful.cli.texts import Columns, Dialect, Source, Texts
from heedful.library.load import bundle_folder
from heedful.training.config import Device
from heedful.training.tasks.base import UNLABELLED, Example


def command(
    bundle: Annotated[str, typer.Argument(help="An embedding's bundle: its name or its folder.")],
    pairs: Annotated[
        str,
        typer.Argument(
            help="Pairs: .jsonl, .csv, .tsv, each maybe with .gz, or .parquet; - is stdin."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The new bundle, such as bundles/mine.")],
    columns: Annotated[
        str, typer.Option(help="The two columns of texts that belong together.")
    ] = "a,b",
    negative_column: Annotated[
        str | None, typer.Option(help="Column of a text that does not belong to the first.")
    ] = None,
    score_column: Annotated[
        str | None, typer.Option(help="Column of the pair's similarity: a score, or 0 and 1.")
    ] = None,
    format: TextsFormat = None,
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    runs: Runs = RUNS,
    data: Data = DATA,
    seed: Annotated[int, typer.Option(help="Of order and of what is held out.")] = 1,
    threads: AllThreads = None,
    device: Annotated[Device, typer.Option(help="Where it is trained.")] = "cpu",
) -> None:
    """Train an embedding on pairs of your texts, such as questions and answers, and write its bundle.

    Give 500 pairs or more, better 2,000; the least is 50. A tenth of the pairs is held out: the command prints how well
    it finds them before and after, and what it has lost on STS-B and SICK where these are in --data.

    Example: heedful tune ms-san-embed faq.csv --columns question,answer --out bundles/faq
    """
    names = tuple(columns.split(","))
    if len(names) != 2:
        raise typer.BadParameter("--columns takes two names with a comma between")
    if negative_column and score_column:
        raise typer.BadParameter("give --negative-column or --score-column, one of them")
    pair_columns = Columns(names[0], second=names[1], all_columns=True, pair_options="--columns")
    source = Source(pairs, format, pair_columns, Dialect(encoding, delimiter))
    folder = bundle_folder(bundle)
    rows = list(read_pairs(source, negative_column, score_column))
    from heedful.cli.tune_run import compare_similarity, doubts, tune

    card = tune(folder, rows, out, runs=runs, seed=seed, threads=threads, device=device)
    before, after = card.scores[-2:]
    typer.echo(
        f"{out}: version {card.version}; {after.metric} of {after.rows} pairs held out: {before.value:.4f} before, "
        f"{after.value:.4f} after"
    )
    for line in doubts(before, after, bundle):
        typer.echo(line)
    for line in compare_similarity(folder, out, data):
        typer.echo(line)


def read_pairs(source: Source, negative: str | None, score: str | None) -> Iterator[Example]:
    """The pairs of a file; rows with a blank text are left out. Raises CommandError naming the line."""
    with source.open(blank=True) as rows:
        for row in rows:
            cells = [row.record.get(name) for name in filter(None, (negative, score))]
            if None in cells:
                raise rows.wrong(
                    row.line, f"no {negative or score!r}: the row has {', '.join(row.record)}"
                )
            texts = (*row.texts, *([str(cells[0])] if negative else []))
            if any(not text or text.isspace() for text in texts):
                continue
            yield Example(texts, _number(cells[0], row.line, rows) if score else UNLABELLED)


def _number(cell: object, line: int, rows: Texts) -> float:
    try:
        number = float(str(cell))
    except ValueError as error:
        raise rows.wrong(line, f"the score is {cell!r}: give a number") from error
    if not math.isfinite(number) or number == UNLABELLED:
        raise rows.wrong(line, f"the score is {cell}: give a number from 0")
    return number
