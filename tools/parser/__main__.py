"""python -m tools.parser OUT: train the dependency parser, measure it, and write it as a spaCy pipeline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example

from heedful.cli.options import DATA, Data, Threads
from heedful.files.atomic import replace_folder
from heedful.text.errors import ParserError
from tools.parser import corpus, soft_trees, treebank
from tools.parser.pipeline import pipeline
from tools.parser.training import train_arc_parser


def write_parser(
    data: Path, out: Path, *, seed: int, cache: Path, console: Console
) -> dict[str, float]:
    """Train, score on the gold sentences of EWT test, and write the pipeline to `out`, whole.

    The teacher, its trees and the weights are kept in `cache`, from which an interrupted run continues. Returns UAS
    and LAS, 0..1. Raises DataMissing, ParityError; ParserError where `out` exists: a bundle loads only with the parser
    of its training, so that no parser may be replaced by accident.
    """
    if out.exists():
        raise ParserError(f"{out} exists: name another folder, or remove it first")
    trained = train_arc_parser(data, seed=seed, cache=cache, console=console)
    sample = corpus.gold(trained.nlp, treebank.sentences(data, "dev"), trained.labels)
    nlp = pipeline(trained, sample)
    scores = evaluate(nlp, treebank.sentences(data, "test"))
    nlp.meta.update(meta(scores, seed))
    with replace_folder(out) as folder:
        nlp.to_disk(folder)
    return scores


def evaluate(nlp: Language, gold: Sequence[Doc]) -> dict[str, float]:
    """UAS and LAS, 0..1, of `nlp` on the raw text of gold sentences, its tokens aligned with the treebank's.

    spaCy's scorer, without punctuation.
    """
    examples = [
        Example(predicted, reference)
        for predicted, reference in zip(nlp.pipe(doc.text for doc in gold), gold, strict=True)
    ]
    scores = Scorer.score_deps(
        examples,
        "dep",
        getter=lambda token, attribute: getattr(token, f"{attribute}_"),
        head_attr="head",
        labels=nlp.pipe_labels["parser"],
        ignore_labels=("p", "punct"),
    )
    return {"uas": scores["dep_uas"], "las": scores["dep_las"]}


def meta(scores: dict[str, float], seed: int) -> dict[str, object]:
    """The pipeline's meta.json: sources, licences and scores."""
    return {
        "name": "heedful_arcs",
        "version": "1.0.0",
        "description": "Dependency parser of Heedful: tokenizer and arc parser for English, UD relations",
        "author": "Heedful",
        "license": treebank.EWT_LICENCE,
        "sources": [
            {"name": "UD English EWT", "license": treebank.EWT_LICENCE},
            {"name": "all-MiniLM-L6-v2 (teacher)", "license": "Apache-2.0"},
            *({"name": f"texts of {name}, trees by the teacher"} for name in soft_trees.TEXTS),
        ],
        "performance": {
            "dep_uas": scores["uas"],
            "dep_las": scores["las"],
            "on": "EWT test, gold sentences, raw text, punctuation left out",
            "seed": seed,
        },
    }


def command(
    out: Annotated[Path, typer.Argument(help="Folder of the pipeline; it must not exist.")],
    data: Data = DATA,
    cache: Annotated[Path, typer.Option(help="Folder of finished steps.")] = Path(
        ".cache/arc-parser"
    ),
    threads: Threads = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every step.")] = 1,
) -> None:
    """Train the dependency parser on UD English EWT and on a teacher's trees of plain texts."""
    torch.set_num_threads(threads)
    console = Console()
    scores = write_parser(data, out, seed=seed, cache=cache, console=console)
    console.print(f"EWT test, gold sentences: {scores}")


if __name__ == "__main__":
    typer.run(command)
