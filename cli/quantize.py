"""quantize: int8 graphs for a bundle, unless its score or its vectors change too much."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.local_model import open_folder
from heedful.cli.options import DATA, BundleParser, Bundles, Data, parser_for
from heedful.export.bundle_writer import rewrite, write
from heedful.export.errors import ExportError
from heedful.export.int8_bundle import Int8Files, float_files, int8_files
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import Card, Int8Card
from heedful.text.arrays import Floats
from heedful.training.evaluate import Score, measure
from heedful.training.tasks.base import Task

MAX_LOSS = 0.003
"""The dev score may fall by 0.3 points."""
MIN_COSINE = 0.999
"""Between a sentence's vectors before and after."""
SENTENCES = 1000
"""Maximum to compare, spread evenly over dev."""


def command(
    bundles: Bundles,
    task: Annotated[
        str | None, typer.Option(help="Task to score them on; default: each card's own.")
    ] = None,
    again: Annotated[
        bool, typer.Option(help="Make int8 graphs once more where there are some.")
    ] = False,
    data: Data = DATA,
    parser: BundleParser = None,
) -> None:
    """Add int8 graphs to bundles, for the CPU, unless score or vectors change too much."""
    for bundle in bundles:
        pipeline = parser_for(bundle, parser)
        card = quantize(bundle, task, again=again, data=data, parser=pipeline, console=Console())
        assert card.int8 is not None
        typer.echo(
            f"{bundle}: version {card.version}, {card.int8.metric} on {card.int8.dataset} dev "
            f"{card.int8.float32:.4f} -> {card.int8.int8:.4f}, cosine at least {card.int8.cosine:.5f}"
        )


@dataclass(frozen=True, slots=True)
class Measured:
    scores: list[Score]  # dev first
    vectors: Floats  # of the compared sentences, of length 1


def quantize(
    bundle: Path,
    task: str | None,
    *,
    again: bool = False,
    data: Path,
    parser: str,
    console: Console,
) -> Card:
    """Put int8 graphs into the bundle, in place; its card records what that changed.

    With `again` they are compared with float32 products of the weights as they are stored: in bytes.
    `task` is by default the card's. Raises ExportError, and leaves the bundle unchanged, if it has
    such graphs already and they are not to be made `again`, if no product can be computed in integers, or if score
    or vectors change too much; ConfigError for a task of another kind, BundleError, DataMissing.
    """
    before = read(bundle)
    chosen = rescore.task_of(before, task)
    if before.card.int8 and not again:
        raise ExportError(f"{bundle.name} holds int8 graphs already; --again makes them once more")
    made = int8_files(before)
    console.print(f"{bundle.name}: {made.products} products in int8, {made.left} left in float32")
    sentences = compared_sentences(chosen, data)
    plain = {**before.card.fields(), "int8": None}
    was = measured(bundle.name, plain, float_files(before), chosen, data, parser, sentences)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / bundle.name
        write(new, *_parts(before, made, _about(made, was, was), before.card.scores))  # to measure
        with open_folder(new, parser) as model:
            found = rescore.scores(before, chosen, data, model)
            now = Measured(found, model.embed(sentences))
    about = _about(made, was, now)
    _check(bundle.name, about)
    scores = rescore.merge_scores(before.card, now.scores)
    return rewrite(bundle, *_parts(before, made, about, scores))


def measured(
    name: str,
    fields: Mapping[str, Any],
    files: Mapping[str, bytes],
    task: Task,
    data: Path,
    parser: str,
    sentences: Sequence[str],
) -> Measured:
    """The dev score and the vectors of a bundle of these fields and files."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name, fields, files)
        with open_folder(Path(folder) / name, parser) as model:
            return Measured(measure(task, "dev", data, model), model.embed(sentences))


def compared_sentences(task: Task, data: Path) -> list[str]:
    """Distinct texts, evenly spread over dev."""
    texts = list(dict.fromkeys(text for one in task.dev.read(data) for text in one.texts))
    return texts[:: -(-len(texts) // SENTENCES)]


def _about(made: Int8Files, was: Measured, now: Measured) -> Int8Card:
    company = made.batch_deviation
    return Int8Card(products=made.products, left=made.left, company=company, **changes(was, now))


def changes(was: Measured, now: Measured) -> dict[str, Any]:
    """What a card says of the scores and vectors of float32, and of int8."""
    return {
        "dataset": was.scores[0].dataset,
        "metric": was.scores[0].metric,
        "float32": was.scores[0].value,
        "int8": now.scores[0].value,
        "cosine": float((was.vectors * now.vectors).sum(axis=1).min()),
        "sentences": len(was.vectors),
    }


def _check(name: str, about: Int8Card) -> None:
    lost = about.float32 - about.int8
    if lost > MAX_LOSS or not about.cosine >= MIN_COSINE:
        raise ExportError(
            f"{name} stays float32: in int8 {about.metric} on {about.dataset} dev falls by {lost:.4f} "
            f"(at most {MAX_LOSS}), and the minimum cosine of a vector to float32's is "
            f"{about.cosine:.5f} (at least {MIN_COSINE})"
        )


def _parts(
    bundle: Bundle, made: Int8Files, about: Int8Card, scores: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The fields and the files of the bundle with int8 graphs."""
    fields = bundle.card.fields()
    if not bundle.card.int8:
        fields["parity"]["against"] += "; before the matrices of int8 products were stored as bytes"
    files = {**bundle.model_files, **made.files}
    return {**fields, "int8": about, "scores": scores}, files
