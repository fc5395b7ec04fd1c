"""A parser compared with another, from text to tree: sentences a second in batches, and one sentence alone.

    OMP_NUM_THREADS=1 python -m benchmarks.parse PARSER OTHER [--data FOLDER] [--sentences 2048]

Distinct sentences of SNLI dev of 11 to 13 tokens, the same for both, on one thread, in this process, through
heedful.text.parse as the service calls it: tokenizer, features and tree. The two take turns of A_TURN
sentences, so that other load on the machine counts for both, and neither empties the other's caches at each
batch. Times are processor times of this process: the median over the batches, and the least. The first
quarter of the sentences is not counted. The ratio is the second parser's median time over the first's.
"""

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from heedful.text.parse import Parser
from heedful.training.data_folder import data_folder, find, records

BATCHES = (64, 1)
TOKENS = range(11, 14)
A_TURN = 256
"""Sentences of a turn, or one batch."""
ALONE = 512
"""Sentences that are parsed one by one."""


def sentences(data: Path, parser: Parser, count: int) -> list[str]:
    """`count` sentences of `TOKENS` tokens, in random order."""
    texts = {
        record[field].strip(): None
        for record in records(find(data, ("snli/dev.jsonl",), dataset="snli"))
        for field in ("premise", "hypothesis")
    }
    parses = parser.parse(list(texts), 256, tree=False)
    fitting = [parse.text for parse in parses if len(parse) in TOKENS]
    return random.Random(1).sample(fitting, min(count, len(fitting)))


def times(parsers: Sequence[Parser], texts: Sequence[str], size: int) -> list[list[float]]:
    """Microseconds a sentence of each whole batch, of each parser."""
    by_parser: list[list[float]] = [[] for _ in parsers]
    batches = [texts[start : start + size] for start in range(0, len(texts) - size + 1, size)]
    length = max(1, A_TURN // size)
    for turn, first in enumerate(range(0, len(batches), length)):
        for which in range(len(parsers)) if turn % 2 else reversed(range(len(parsers))):
            for batch in batches[first : first + length]:
                start = time.process_time_ns()
                parsers[which].parse(batch, 256, tree=True)
                by_parser[which].append((time.process_time_ns() - start) / 1000 / size)
    return by_parser


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("parsers", nargs=2)
    arguments.add_argument("--data", type=Path, default=data_folder())
    arguments.add_argument("--sentences", type=int, default=2048)
    options = arguments.parse_args()
    parsers = [Parser.load(folder) for folder in options.parsers]
    texts = sentences(options.data, parsers[0], options.sentences)
    table = Table("batch", "parser", "µs a sentence", "least", "sentences/s", "ratio")
    for size in BATCHES:
        times(parsers, texts[: len(texts) // 4], size)
        by_parser = times(parsers, texts if size > 1 else texts[:ALONE], size)
        for parser, folder, spent in zip(parsers, options.parsers, by_parser, strict=True):
            table.add_row(
                *(str(size), f"{parser.name} ({folder})"),
                *(f"{median(spent):.1f}", f"{min(spent):.1f}", f"{1e6 / median(spent):,.0f}"),
                f"{median(by_parser[1]) / median(spent):.2f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
