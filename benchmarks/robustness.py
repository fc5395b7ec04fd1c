"""The cost of other spellings: dev scores of bundles on a task's texts, and on the same texts in other spellings.

For "misspelt" each content word is replaced, with probability SHARE, by a spelling one edit away that no bundle
lists; TYPED has the others. All bundles read the same texts.

    python -m benchmarks.robustness sst2 bundles/ms-san-sst2 another/bundle
"""

import html
import random
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer
from spacy.lang.en.stop_words import STOP_WORDS

from benchmarks.records import Row, table, write
from heedful.runtime.bundles.bundle import read
from heedful.text.parse import Parser
from heedful.text.vocab import Vocab
from heedful.training.composed import SHORTEST_MISSPELT, misspell
from heedful.training.data import labels
from heedful.training.data_folder import data_folder
from heedful.training.metrics import METRICS
from heedful.training.tasks import add, get
from heedful.training.tasks.base import Example, Task
from tools.local_model import open_folder
from tools.scoring import Predictor, predict

FOLDER = Path("results/robustness")
SHARE = 0.3
SEED = 1
TRIES = 20
"""Spellings tried for a word before it stays unchanged."""
TYPED: dict[str, Callable[[str], str]] = {
    "typographic": lambda text: re.sub(r'"([^"]*)"', r"“\1”", _joined(text).replace("'", "’")),
    "no apostrophe": lambda text: re.sub(r"n't\b", "nt", _joined(text)),
    "emoji": lambda text: f"{text} 😂😂",
    "symbols": lambda text: f"→ {text} ★★★",
    "link": lambda text: f"{text} https://t.co/abc",
    "mention": lambda text: f"@user {text}",
    "stretched": lambda text: re.sub(r"\b(\w{2,}?)([aeiou])(?=\w)", r"\1\2\2\2\2", text),
    "entities": lambda text: html.escape(_joined(text)),
    "tags": lambda text: f"<p>{text}</p>",
}
"""Ways to type a text."""


def main(
    task: Annotated[str, typer.Argument(help="Task, judged on its dev split.")],
    bundles: Annotated[list[Path], typer.Argument(help="Folders of the bundles to compare.")],
    parser: Annotated[str, typer.Option(help="spaCy pipeline.")] = "bundles/parser",
) -> None:
    """Measure, and write the record."""
    add("tools.tasks")
    scored_task = get(task)
    examples = scored_task.dev.read(data_folder())
    lists = [vocab for folder in bundles if isinstance(vocab := read(folder).vocab, Vocab)]
    listed = {word for vocab in lists for word in vocab.words}
    variants = {"dev": examples, "misspelt": misspelt(examples, listed, Parser.load(parser))}
    variants |= {name: _each(examples, typed) for name, typed in TYPED.items()}
    rows: list[Row] = []
    for folder in bundles:
        with open_folder(folder, parser) as model:
            scores = {
                name: 100 * _score(scored_task, each, model) for name, each in variants.items()
            }
        rows.append({"bundle": folder.name, **scores})
    caption = f"{task} dev ({len(examples):,} rows), as it is and in other spellings"
    write("robustness", f"Other spellings: {task}", table(caption, rows), folder=FOLDER / task)


def _each(examples: Sequence[Example], typed: Callable[[str], str]) -> list[Example]:
    return [Example(tuple(map(typed, each.texts)), each.label) for each in examples]


def _joined(text: str) -> str:
    """The treebank's "is n't" as people write it."""
    return re.sub(r" (n't|'(?:s|re|ve|ll|d|m)\b)", r"\1", text)


def _score(task: Task, examples: Sequence[Example], model: Predictor) -> float:
    answers = predict(examples, task, model)
    metric, *_ = METRICS[task.kind].values()
    return metric(answers, labels(examples))


def misspelt(examples: Sequence[Example], listed: Collection[str], parser: Parser) -> list[Example]:
    """The examples with unlisted spellings, the same for the same seed."""
    rng = random.Random(SEED)
    texts = [text for example in examples for text in example.texts]
    changed = {}
    for text, parse in zip(texts, parser.parse(texts, 512, tree=False), strict=True):
        parts, end = [], 0
        for word, start, stop in zip(parse.tokens, parse.starts, parse.stops, strict=True):
            parts += [text[end:start], _unlisted(word, listed, rng)]
            end = stop
        changed[text] = "".join([*parts, text[end:]])
    return [Example(tuple(changed[text] for text in each.texts), each.label) for each in examples]


def _unlisted(word: str, listed: Collection[str], rng: random.Random) -> str:
    content = word.isalpha() and len(word) >= SHORTEST_MISSPELT and word.lower() not in STOP_WORDS
    if not content or rng.random() >= SHARE:
        return word
    spellings = (misspell(word, rng) for _ in range(TRIES))
    return next((each for each in spellings if each.lower() not in listed), word)


if __name__ == "__main__":
    typer.run(main)
