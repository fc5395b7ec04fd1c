"""train parser: the arc parser as a measured pipeline."""

from pathlib import Path

from rich.console import Console

from heedful.export.arc_parser import pipeline
from heedful.training import arc_corpus, parser, soft_trees, treebank
from heedful.training.arc_parser import train_arc_parser


def write_arc_parser(
    data: Path, out: Path, *, seed: int, cache: Path, console: Console
) -> dict[str, float]:
    """Train, score on the gold sentences of EWT test, and write the pipeline to `out`, whole.

    The teacher, its trees and the weights are kept in `cache`: an interrupted run continues after what
    is there. Returns UAS and LAS, 0..1. Raises DataMissing, ParityError; ParserError where `out` holds something
    that is not a pipeline.
    """
    parser.check_out(out)
    trained = train_arc_parser(data, seed=seed, cache=cache, console=console)
    sample = arc_corpus.gold(trained.nlp, treebank.sentences(data, "dev"), trained.labels)
    nlp = pipeline(trained, sample)
    scores = parser.evaluate(nlp, treebank.sentences(data, "test"))
    nlp.meta.update(parser.meta("arcs", "tokenizer and arc parser", scores, seed, soft_trees.TEXTS))
    parser.write_pipeline(nlp, out)
    return scores
