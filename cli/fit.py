"""fit: labelled texts -> a classifier. The files are read before torch is imported, which takes seconds."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from heedful.cli.options import Delimiter, Encoding, Threads, command_line
from heedful.training.config import VECTORS, Device
from heedful.training.labelled_texts import Labelled, Reading
from heedful.training.taught_vectors import Effort


def command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Labelled texts: a .csv, .tsv, .jsonl, .parquet or .xlsx file, or a folder with a folder a label."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The bundle's folder, bundles/<name>.")],
    label_column: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    text_column: Annotated[
        str | None, typer.Option(help="Column of the texts; default text.")
    ] = None,
    pair_columns: Annotated[
        str | None,
        typer.Option(help="For pairs of texts: their two columns, as premise,hypothesis."),
    ] = None,
    effort: Annotated[
        Effort, typer.Option(help="quick: linear models; normal, high: encoders are trained too.")
    ] = "normal",
    test: Annotated[
        Path | None, typer.Option(help="Another labelled file, to measure the bundle on.")
    ] = None,
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            help="Another file with texts in the same column, to learn from without labels."
        ),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            "--teacher",
            help="The encoder that labels the texts of --unlabelled: minilm (default), mpnet, the folder of a sentence "
            "encoder, or its name on the hub.",
        ),
    ] = None,
    multi_label: Annotated[
        str, typer.Option(help="Texts have several labels: what divides them in a cell, as ';'.")
    ] = "",
    class_weight: Annotated[
        Literal["none", "balanced"],
        typer.Option(help="balanced: rare classes weigh as much as others."),
    ] = "none",
    abstain: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Target precision: the bundle answers null where it is less confident.",
        ),
    ] = None,
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The columns have no names: they are 1, 2, ..")
    ] = False,
    drop_blank: Annotated[
        bool, typer.Option("--drop-blank", help="Leave out rows without a text or a label.")
    ] = False,
    drop_conflicts: Annotated[
        bool, typer.Option("--drop-conflicts", help="Leave out equal texts of different labels.")
    ] = False,
    base: Annotated[
        str,
        typer.Option(help="The embedding bundle whose vectors are used: its name, or its folder."),
    ] = "ms-san-embed",
    encoder: Annotated[
        str, typer.Option(help="An encoder to train; `heedful list --encoders` names them.")
    ] = "ms-san",
    vectors: Annotated[
        str,
        typer.Option(
            help="Its word vectors: a bundle's name or folder, or a text file of GloVe's or fastText's."
        ),
    ] = VECTORS,
    parser: Annotated[
        str | None,
        typer.Option(help="spaCy pipeline, a folder or a package; default that of --base."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the training.")] = 1,
    threads: Threads = 1,
    device: Annotated[
        Device, typer.Option("--device", help="Where encoders and --teacher are trained.")
    ] = "cpu",
) -> None:
    """Train classifiers on your own texts, measure them, and write the best as a bundle.

    Example: heedful fit reviews.csv --text-column text --label-column stars --out bundles/stars
    """
    if pair_columns and text_column:
        raise typer.BadParameter("give --text-column or --pair-columns, one of them")
    columns = pair_columns.split(",") if pair_columns else [text_column or "text"]
    if pair_columns and len(columns) != 2:
        raise typer.BadParameter("--pair-columns takes two names with a comma between")
    if find_spec("torch") is None:  # names the extra to install, before the file is read
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    reading = Reading(encoding, delimiter, not no_header, drop_blank, drop_conflicts, multi_label)
    labelled = Labelled.of(file, columns, label_column, reading, test)

    import torch

    from heedful.cli import fit_report, fit_run
    from heedful.runtime.bundles import shipped

    torch.set_num_threads(threads)
    folder = fit_run.bundle_of("--base", base)
    pipeline = parser or str(shipped.parser_folder(folder.parent))
    fit_options = fit_run.FitOptions(
        out=out,
        base=folder,
        parser=pipeline,
        effort=effort,
        encoder=encoder,
        word_vectors=vectors,
        seed=seed,
        class_weight=None if class_weight == "none" else class_weight,
        abstain=abstain,
        test=test,
        unlabelled=unlabelled,
        teacher=teacher,
        reading=reading,
        command=command_line(),
        device=device,
    )
    card = fit_run.fit_rows(labelled, fit_options, Console())
    default = shipped.parser_folder(out.parent).resolve()
    parser_flag = "" if Path(pipeline).resolve() == default else f" --parser {pipeline}"
    typer.echo(
        f"{out}: version {card.version}; read {out / fit_report.PAGE}; "
        f"ask /classify for {card.name} after `heedful serve --models {out.parent}{parser_flag}`, or label a "
        f"file with `heedful predict FILE --model {out}{parser_flag} --out LABELLED`"
    )
