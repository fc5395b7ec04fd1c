"""`fit` after its files are read: the best of several classifiers, as a bundle and a report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console

from heedful.cli.fit_candidate import BundleFacts, Candidate, Problem, best
from heedful.cli.fit_linear import LinearFit, choose_unlabelled
from heedful.cli.fit_report import Report
from heedful.cli.fit_tuned import TunedEncoder
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

ENCODER_FROM: dict[Effort, float] = {
    "quick": float("inf"),
    "normal": assess.ONE_SPLIT_FOR_ENCODERS,
    "high": 100,
}
"""Rows from which an encoder is trained too; with fewer it always lost to a linear model (docs/fit.md)."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """The options of `fit`, which the command's help explains."""

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


def fit_rows(labelled: Labelled, options: FitOptions, console: Console) -> Card:
    """Assess the candidates on the rows, write the best one's bundle and the report in its folder.

    Raises DataError, ConfigError, DataMissing, ExportError, BundleError, StartupError.
    """
    file, rows, pairs = labelled.file, labelled.rows, len(labelled.columns) == 2
    _check(options, pairs)
    require_device(options.device)
    problem = Problem.of(file, rows, options.reading.separator)
    if pairs and len(set(problem.groups)) < assess.MIN_TEXTS:
        raise DataError(
            f"{file.name}: pairs of the same first text are held out together: give {assess.MIN_TEXTS} different ones"
        )
    if options.test:
        _check_test(options.test, labelled.test, problem, options.reading.separator)
    console.print(f"{file.name}: {len(rows)} rows, {len(problem.labels)} labels")
    most = assess.ONE_SPLIT_FOR_ENCODERS if pairs else assess.ONE_SPLIT_FOR_ALL
    parts = assess.splits(problem.targets, problem.groups, seed=options.seed, most=most)
    report = Report(file, problem, parts)

    unlabelled = _unlabelled(problem, labelled.columns[0], options, report)
    fine_tune = None if options.effort == "quick" else options.seed
    linear = None
    if not pairs:
        linear = LinearFit.read(
            problem,
            options.base,
            options.parser,
            unlabelled,
            options.teacher or teachers.MINILM,
            fine_tune,
            options.device,
        )
    # A GPU trains one after the other as fast as all at once.
    processes = max(1, usable_cores() // torch.get_num_threads()) if options.device == "cpu" else 1
    candidates = linear.candidates(parts, options.class_weight, processes) if linear else []
    candidates += _encoder_candidates(problem, file, parts, options, report, console, only=pairs)
    chosen = best(candidates)
    temperature = assess.temperature(chosen.held)
    held = chosen.held.divided(temperature)
    references = linear.references(parts, options.class_weight) if linear else []
    report.choose(candidates, references, chosen, held, temperature)
    least = report.abstain(held, options.abstain) if options.abstain else None
    if linear:
        max_tokens = linear.base.card.max_tokens
        report.content["truncated"] = {"rows": linear.truncated, "max_tokens": max_tokens}
        report.explain(linear, options.seed, candidates, chosen)
    report.show(console)

    scores, commit = (_score(problem, held),), source_commit()
    data = problem.card
    provenance = Provenance(data.name, data, options.command, options.seed, scores, commit)
    card = chosen.make(BundleFacts(options.out, temperature, least, provenance))
    if options.test:
        separator = options.reading.separator
        report.test(options.out, options.parser, options.test, labelled.test, separator)
    report.write(options.out, card, console)
    return card


def _check(options: FitOptions, pairs: bool) -> None:
    require_free(options.out)
    for option, name in (("--base", str(options.base)), ("--vectors", options.word_vectors)):
        if _is_bundle(name, options.out):
            raise ConfigError(
                f"--out: {options.out} is also {option}, which it would replace: name another folder"
            )
    if options.encoder not in ENCODERS:
        known = ", ".join(sorted(ENCODERS))
        raise ConfigError(f"--encoder: {options.encoder!r}: known are {known}")
    if options.abstain and options.reading.separator:
        raise ConfigError("--abstain is for one label a row: leave it or --multi-label out")
    for_one_text = {
        "--unlabelled": options.unlabelled,
        "--class-weight": options.class_weight,
        "--abstain": options.abstain,
        "--multi-label": options.reading.separator,
    }
    for option, value in for_one_text.items():
        if pairs and value:
            raise ConfigError(f"{option} is for one text a row: leave it or --pair-columns out")
    if options.teacher and not options.unlabelled:
        raise ConfigError("--teacher labels the texts of --unlabelled: give these, or leave it out")
    if options.unlabelled:
        teachers.folder(options.teacher or teachers.MINILM)


def _check_test(file: Path, rows: Sequence[Row], problem: Problem, separator: str) -> None:
    """Raise DataError unless training has one of the labels."""
    labels = sorted({label for row in rows for label in row.labels(separator)})
    if not set(labels) & set(problem.labels):
        raise DataError(
            f"--test: {file.name} has the labels {', '.join(labels[:10])}, none of which is in the training file "
            f"({', '.join(problem.labels[:10])}): write them alike in both"
        )


def bundle_of(option: str, name: str) -> Path:
    """The folder of the bundle that an option names. Raises ConfigError."""
    try:
        return bundle_folder(name)
    except StartupError as error:
        raise ConfigError(f"{option}: {error}") from error


def _is_bundle(name: str, folder: Path) -> bool:
    """Whether `name`, the value of an option, means the bundle in `folder`."""
    try:
        return bundle_folder(name).resolve() == folder.resolve()
    except StartupError:  # a file of word vectors, or no bundle, which is refused when it is read
        return False


def _unlabelled(problem: Problem, column: str, options: FitOptions, report: Report) -> list[str]:
    """Texts without labels to learn from. Raises DataError."""
    if options.unlabelled is None:
        return []
    texts = labelled_texts.read_texts(options.unlabelled, column, options.reading)
    chosen = choose_unlabelled(texts, problem, options.seed)
    report.content["unlabelled"] = {
        "file": options.unlabelled.name,
        "teacher": teachers.title(options.teacher or teachers.MINILM),
        "texts": len(texts),
        "learned": len(chosen),
    }
    return chosen


def _encoder_candidates(
    problem: Problem,
    file: Path,
    parts: Sequence[assess.Split],
    options: FitOptions,
    report: Report,
    console: Console,
    *,
    only: bool,
) -> list[Candidate]:
    """An encoder trained on the rows, unless that cannot win or the options exclude it."""
    name = f"{options.encoder} trained from word vectors"
    least = ENCODER_FROM[options.effort]
    if not only:
        if problem.multi_label or options.class_weight:
            report.skip(name, "its training has neither several labels a row nor class weights")
            return []
        if len(problem.rows) < least:
            reason = "--effort quick" if options.effort == "quick" else f"fewer than {least:g} rows"
            report.skip(name, f"{reason}: with few rows it loses to linear models")
            return []
        if assess.most_texts(problem.targets, problem.groups) < assess.MIN_TEXTS:
            report.skip(
                name, f"no label has {assess.MIN_TEXTS} texts: too few to choose its epochs by"
            )
            return []
    words = options.word_vectors
    if not Path(words).is_file():
        words = str(bundle_of("--vectors", words))
    tuned = TunedEncoder(
        problem, file, options.encoder, words, options.parser, options.seed, console, options.device
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
