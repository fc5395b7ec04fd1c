"""fit, once the files are read: the best of several classifiers, as a bundle and a report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console

from heedful.cli.fit_candidate import BundleFacts, Candidate, Problem, best
from heedful.cli.fit_linear import LinearFit, choose_unlabelled
from heedful.cli.fit_report import Report
from heedful.cli.fit_tuned import Tuned
from heedful.cli.options import require_free
from heedful.export.linear_head import Provenance
from heedful.library.load import bundle_folder
from heedful.models.registry import ENCODERS
from heedful.runtime.bundles.card import Card, ScoreCard
from heedful.runtime.cores import usable_cores
from heedful.runtime.errors import StartupError
from heedful.training import assess, labelled_texts, teachers
from heedful.training.config import VECTORS, Device
from heedful.training.errors import ConfigError, DataError
from heedful.training.labelled_texts import Labelled, Reading, Row
from heedful.training.linear import ClassWeight
from heedful.training.optimise import require_device
from heedful.training.source_commit import source_commit
from heedful.training.taught_vectors import Effort

TUNED_FROM: dict[Effort, float] = {
    "quick": float("inf"),
    "normal": assess.ONE_SPLIT_FOR_ENCODERS,
    "high": 100,
}
"""Rows from which an encoder is trained too; with fewer it has always lost to a linear model (docs/fit.md)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `fit`. Those that are not explained here are explained by the command."""

    out: Path
    base: Path
    parser: str
    effort: Effort = "normal"
    encoder: str = "ms-san"
    word_vectors: str = VECTORS
    seed: int = 1
    class_weight: ClassWeight = None
    abstain: float | None = None
    test: Path | None = None
    unlabelled: Path | None = None
    teacher: str | None = None
    reading: Reading = field(default_factory=Reading)
    command: str = "heedful fit"
    device: Device = "cpu"


def fit_rows(given: Labelled, wanted: Wanted, console: Console) -> Card:
    """Assess the candidates on the rows, write the best one's bundle and the report in its folder.

    Raises DataError, ConfigError, DataMissing, ExportError, BundleError, StartupError.
    """
    file, rows, pairs = given.file, given.rows, len(given.columns) == 2
    _check(wanted, pairs)
    require_device(wanted.device)
    problem = Problem.of(file, rows, wanted.reading.separator)
    if pairs and len(set(problem.groups)) < assess.MIN_TEXTS:
        raise DataError(
            f"{file.name}: pairs of the same first text are held out together: give {assess.MIN_TEXTS} different ones"
        )
    if wanted.test:
        _check_test(wanted.test, given.test, problem, wanted.reading.separator)
    console.print(f"{file.name}: {len(rows)} rows, {len(problem.labels)} labels")
    most = assess.ONE_SPLIT_FOR_ENCODERS if pairs else assess.ONE_SPLIT_FOR_ALL
    parts = assess.splits(problem.targets, problem.groups, seed=wanted.seed, most=most)
    report = Report(file, problem, parts)

    unlabelled = _unlabelled(problem, given.columns[0], wanted, report)
    fine_tune = None if wanted.effort == "quick" else wanted.seed
    linear = None
    if not pairs:
        linear = LinearFit.read(
            problem,
            wanted.base,
            wanted.parser,
            unlabelled,
            wanted.teacher or teachers.MINILM,
            fine_tune,
            wanted.device,
        )
    # A GPU trains one after the other as fast as all at once.
    at_once = usable_cores() // torch.get_num_threads() if wanted.device == "cpu" else 1
    processes = max(1, at_once)
    candidates = linear.candidates(parts, wanted.class_weight, processes) if linear else []
    candidates += _tuned(problem, file, parts, wanted, report, console, only=pairs)
    chosen = best(candidates)
    temperature = assess.temperature(chosen.held)
    held = chosen.held.divided(temperature)
    references = linear.references(parts, wanted.class_weight) if linear else []
    report.choose(candidates, references, chosen, held, temperature)
    least = report.abstain(held, wanted.abstain) if wanted.abstain else None
    if linear:
        most = linear.base.card.max_tokens
        report.content["truncated"] = {"rows": linear.truncated, "max_tokens": most}
        report.explain(linear, wanted.seed, candidates, chosen)
    report.show(console)

    scores, commit = (_score(problem, held),), source_commit()
    made = Provenance(problem.name, problem.card, wanted.command, wanted.seed, scores, commit)
    card = chosen.make(BundleFacts(wanted.out, temperature, least, made))
    if wanted.test:
        report.test(wanted.out, wanted.parser, wanted.test, given.test, wanted.reading.separator)
    report.write(wanted.out, card, console)
    return card


def _check(wanted: Wanted, pairs: bool) -> None:
    require_free(wanted.out)
    for option, read in (("--base", str(wanted.base)), ("--vectors", wanted.word_vectors)):
        if _is_bundle(read, wanted.out):
            raise ConfigError(
                f"--out: {wanted.out} is also {option}, which it would replace: name another folder"
            )
    if wanted.encoder not in ENCODERS:
        known = ", ".join(sorted(ENCODERS))
        raise ConfigError(f"--encoder: {wanted.encoder!r}: known are {known}")
    if wanted.abstain and wanted.reading.separator:
        raise ConfigError("--abstain is for one label a row: leave it or --multi-label out")
    for_one_text = {
        "--unlabelled": wanted.unlabelled,
        "--class-weight": wanted.class_weight,
        "--abstain": wanted.abstain,
        "--multi-label": wanted.reading.separator,
    }
    for option, value in for_one_text.items():
        if pairs and value:
            raise ConfigError(f"{option} is for one text a row: leave it or --pair-columns out")
    if wanted.teacher and not wanted.unlabelled:
        raise ConfigError("--teacher labels the texts of --unlabelled: give these, or leave it out")
    if wanted.unlabelled:
        teachers.folder(wanted.teacher or teachers.MINILM)


def _check_test(file: Path, rows: Sequence[Row], problem: Problem, separator: str) -> None:
    """Raise DataError unless training has one of the labels."""
    found = sorted({label for row in rows for label in row.labels(separator)})
    if not set(found) & set(problem.labels):
        raise DataError(
            f"--test: {file.name} has the labels {', '.join(found[:10])}, none of which is in the training file "
            f"({', '.join(problem.labels[:10])}): write them alike in both"
        )


def bundle_of(option: str, name: str) -> Path:
    """The folder of the bundle that an option names. Raises ConfigError."""
    try:
        return bundle_folder(name)
    except StartupError as error:
        raise ConfigError(f"{option}: {error}") from error


def _is_bundle(name: str, folder: Path) -> bool:
    """Whether an option's name of a bundle means the one in `folder`."""
    try:
        return bundle_folder(name).resolve() == folder.resolve()
    except StartupError:  # a file of word vectors, or no bundle, which is said when it is read
        return False


def _unlabelled(problem: Problem, column: str, wanted: Wanted, report: Report) -> list[str]:
    """Texts without labels to learn from. Raises DataError."""
    if wanted.unlabelled is None:
        return []
    read = labelled_texts.read_texts(wanted.unlabelled, column, wanted.reading)
    chosen = choose_unlabelled(read, problem, wanted.seed)
    report.content["unlabelled"] = {
        "file": wanted.unlabelled.name,
        "teacher": teachers.title(wanted.teacher or teachers.MINILM),
        "texts": len(read),
        "learned": len(chosen),
    }
    return chosen


def _tuned(
    problem: Problem,
    file: Path,
    parts: Sequence[assess.Split],
    wanted: Wanted,
    report: Report,
    console: Console,
    *,
    only: bool,
) -> list[Candidate]:
    """An encoder trained on the rows, unless that cannot win or the options exclude it."""
    name = f"{wanted.encoder} trained from word vectors"
    least = TUNED_FROM[wanted.effort]
    if not only:
        if problem.multi_label or wanted.class_weight:
            report.skip(name, "it knows neither several labels a row nor class weights")
            return []
        if len(problem.rows) < least:
            said = "--effort quick" if wanted.effort == "quick" else f"fewer than {least:g} rows"
            report.skip(name, f"{said}: with few rows it loses to linear models")
            return []
        if assess.most_texts(problem.targets, problem.groups) < assess.MIN_TEXTS:
            report.skip(
                name, f"no label has {assess.MIN_TEXTS} texts: too few to choose its epochs by"
            )
            return []
    words = wanted.word_vectors
    if not Path(words).is_file():
        words = str(bundle_of("--vectors", words))
    tuned = Tuned(
        problem, file, wanted.encoder, words, wanted.parser, wanted.seed, console, wanted.device
    )
    return [tuned.candidate(parts)]


def _score(problem: Problem, held: assess.HeldOut) -> ScoreCard:
    parts = len(set(held.folds.tolist()))
    share = f"{len(held.rows) / len(problem.rows):.0%} of the rows"
    split = f"held out, {parts} parts" if parts > 1 else f"held out, {share}"
    return ScoreCard(
        dataset=problem.name,
        split=split,
        metric=held.metric.lower().replace(" ", "-"),
        value=held.score,
        rows=len(held.rows),
    )
