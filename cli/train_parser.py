"""train parser: the transition parser, or the head scorer that takes its place, as a measured pipeline."""

from pathlib import Path

from rich.console import Console

from heedful.export.head_scorer import pipeline
from heedful.text.errors import ParserError
from heedful.training import parser, treebank
from heedful.training.head_scorer import train_head_scorer


def write_head_scorer(
    data: Path, out: Path, *, start: Path, seed: int, cache: Path, console: Console
) -> dict[str, float]:
    """Train, score on the gold sentences of EWT test, and write the pipeline to `out`, whole.

    `start` is a transition parser by `training.parser`, whose words and windows it begins with. The
    weights, and the trees that it learns from, are kept in `cache`. Returns UAS and LAS, 0..1. Raises
    DataMissing, ParityError; ParserError for another kind of `start`, or where `out` holds something that
    is not a pipeline.
    """
    parser.check_out(out)
    if out.resolve() == start.resolve():
        raise ParserError(f"{out} is what it begins with: name another folder for the head scorer")
    weights = cache / f"head-scorer-{seed}.pt"
    nlp = pipeline(train_head_scorer(data, start, weights, seed=seed, cache=cache, console=console))
    scores = parser.evaluate(nlp, treebank.sentences(data, "test"))
    nlp.meta.update(parser.meta("heads", "tokenizer and head scorer", scores, seed))
    parser.write_pipeline(nlp, out)
    return scores
