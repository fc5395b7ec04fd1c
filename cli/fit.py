"""fit: labelled texts -> a classifier. The files are read before torch, which takes seconds to import."""

from importlib.util import find_spec
from pathlib import Path

import typer
from rich.console import Console

from heedful.cli import fit_options as options
from heedful.cli.options import Delimiter, Encoding, Threads, command_line
from heedful.training.labelled_texts import Reading


def command(
    file: options.File,
    out: options.Out,
    label_column: options.LabelColumn = "label",
    text_column: options.TextColumn = None,
    pair_columns: options.PairColumns = None,
    effort: options.EffortOption = "normal",
    test: options.Test = None,
    unlabelled: options.Unlabelled = None,
    teacher: options.TeacherOption = None,
    multi_label: options.MultiLabel = "",
    class_weight: options.Weighting = "none",
    abstain: options.Abstain = None,
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    no_header: options.NoHeader = False,
    drop_blank: options.DropBlank = False,
    drop_conflicts: options.DropConflicts = False,
    base: options.Base = "ms-san-embed",
    encoder: options.Encoder = "ms-san",
    vectors: options.Vectors = options.VECTORS,
    parser: options.Parser = None,
    seed: options.Seed = 1,
    threads: Threads = 1,
    device: options.TrainsOn = "cpu",
) -> None:
    """Train classifiers on your own texts, measure them, and write the best as a bundle.

    Example: heedful fit reviews.csv --text-column text --label-column stars --out bundles/stars
    """
    if pair_columns and text_column:
        raise typer.BadParameter("give --text-column or --pair-columns, one of them")
    columns = pair_columns.split(",") if pair_columns else [text_column or "text"]
    if pair_columns and len(columns) != 2:
        raise typer.BadParameter("--pair-columns takes two names with a comma between")
    if find_spec("torch") is None:  # it says what to install, before the file is looked at
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    reading = Reading(encoding, delimiter, not no_header, drop_blank, drop_conflicts, multi_label)
    given = options.Labelled.read(file, columns, label_column, reading, test)

    import torch

    from heedful.cli import fit_report, fit_run
    from heedful.runtime.bundles import shipped

    torch.set_num_threads(threads)
    folder = fit_run.bundle_of("--base", base)
    pipeline = parser or str(shipped.parser_of(folder.parent))
    wanted = fit_run.Wanted(
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
    card = fit_run.fit_rows(given, wanted, Console())
    served = shipped.parser_of(out.parent)
    parser_flag = "" if served.resolve() == Path(pipeline).resolve() else f" --parser {pipeline}"
    typer.echo(
        f"{out}: version {card.version}; read {out / fit_report.PAGE}; "
        f"serve it with `heedful serve --models {out.parent}{parser_flag}` and ask /classify, or label a "
        f"file with `heedful predict FILE --model {out}{parser_flag} --out LABELLED`"
    )
