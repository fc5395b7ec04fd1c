"""Two parsers compared: sentences a second and milliseconds a sentence, one at a time and in batches.

    OMP_NUM_THREADS=1 python -m benchmarks.parse bundles/parser OTHER [--data FOLDER] [--sentences 512]

Distinct sentences of EWT test and of SNLI dev, the same for both, on one thread, in this process,
through text.parse as a parse process calls it (tokenizer included). The two take turns, batch by batch,
so that what else the machine does counts for both; times are of this process's processor. The ratio is
the second parser's time over the first's.
"""

import argparse
import random
import time
from pathlib import Path

from rich.console import Console

from heedful.text.parse import ParseJob, Parser
from heedful.training import treebank
from heedful.training.data_folder import data_folder, find, records

BATCHES = (1, 32)


def sentences(data: Path, count: int) -> list[str]:
    """Half from EWT test, half from SNLI dev, without duplicates, in random order."""
    snli = records(find(data, ("snli/dev.jsonl",), dataset="snli"))
    parts = (
        {doc.text.strip() for doc in treebank.sentences(data, "test")},
        {text for record in snli for text in (record["premise"], record["hypothesis"])},
    )
    rng = random.Random(1)
    found = [text for part in parts for text in rng.sample(sorted(part), count // 2)]
    rng.shuffle(found)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("parsers", nargs=2)
    arguments.add_argument("--data", type=Path, default=data_folder())
    arguments.add_argument("--sentences", type=int, default=512)
    asked = arguments.parse_args()
    out = Console()
    texts = sentences(asked.data, asked.sentences)
    parsers = [Parser.load(folder) for folder in asked.parsers]
    for size in BATCHES:
        seconds = [0.0, 0.0]
        tokens = 0
        for turn, start_at in enumerate(range(0, len(texts), size)):
            group = texts[start_at : start_at + size]
            jobs = [ParseJob(text, 256, tree=True) for text in group]
            for which in (0, 1) if turn % 2 else (1, 0):
                start = time.process_time()
                parses = parsers[which].parse(jobs)
                seconds[which] += time.process_time() - start
            tokens += sum(map(len, parses))
        for parser, spent in zip(parsers, seconds, strict=True):
            out.print(
                f"batch {size:3} {parser.name:20} {1000 * spent / len(texts):7.3f} ms a sentence "
                f"of {tokens / len(texts):.1f} tokens"
            )
        out.print(f"batch {size:3} ratio {seconds[1] / seconds[0]:.2f}")


if __name__ == "__main__":
    main()
