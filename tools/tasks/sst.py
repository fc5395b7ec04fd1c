"""Stanford Sentiment Treebank (Socher et al. 2013): five classes, or two without the neutral ones.

Reads the official trees (`trees/train.txt`, one bracketed tree a line) or `sst5/trees/*.ptb.txt`. Training
uses every node of the train trees, as Kim (2014) does; dev and test are whole sentences.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines, read_each, records, text_of
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task

FIVE = ("very negative", "negative", "neutral", "positive", "very positive")
TWO = ("negative", "positive")
LICENCE = "no licence stated with the data"
_NODE = re.compile(r"\((\d) |\)| ?([^() ]+)")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")"}


def nodes(tree: str) -> Iterator[tuple[str, int]]:
    """(text, label) of every node of a bracketed tree, the whole sentence last.

    Raises ValueError where the brackets do not match.
    """
    open_nodes: list[tuple[int, list[str]]] = []
    for match in _NODE.finditer(tree):
        label, word = match.groups()
        if label is not None:
            open_nodes.append((int(label), []))
        elif not open_nodes:
            raise ValueError("a bracket is closed that was never opened")
        elif word is not None:
            open_nodes[-1][1].append(_ESCAPED.get(word, word).replace("\\/", "/"))
        else:
            closed, words = open_nodes.pop()
            if open_nodes:
                open_nodes[-1][1].extend(words)
            yield " ".join(words), closed
    if open_nodes:
        raise ValueError("a bracket is never closed")


def _trees(data: Path, split: str) -> list[list[tuple[str, int]]]:
    path = find(data, (f"sst5/trees/{split}.ptb.txt", f"trees/{split}.txt"), dataset="sst5")
    trees = read_each(path, lines(path), lambda line: list(nodes(line)))
    return [tree for tree in trees if tree]


def five(label: int) -> int:
    return label


def two(label: int) -> int | None:
    """Five classes to two; None for neutral sentences, which the task leaves out."""
    return None if label == 2 else int(label > 2)


def _examples(
    nodes: Iterable[tuple[str, int]], classes: Callable[[int], int | None]
) -> list[Example]:
    labelled = ((text, classes(label)) for text, label in nodes)
    return [Example((text,), label) for text, label in labelled if label is not None]


def phrases(classes: Callable[[int], int | None]) -> Callable[[Path], list[Example]]:
    def read(data: Path) -> list[Example]:
        distinct = {text: label for tree in _trees(data, "train") for text, label in tree}
        return _examples(distinct.items(), classes)

    return read


def sentences(split: str, classes: Callable[[int], int | None]) -> Callable[[Path], list[Example]]:
    def read(data: Path) -> list[Example]:
        return _examples((tree[-1] for tree in _trees(data, split)), classes)

    return read


def _unlabelled(name: str) -> Source:
    """The texts of another corpus, without its labels."""

    def read(data: Path) -> list[Example]:
        path = find(data, (f"{name}.jsonl",), dataset=name.partition("/")[0])
        texts = read_each(path, records(path), lambda record: text_of(record, "text"))
        return [Example((text,), UNLABELLED) for text in texts]

    return Source(name, LICENCE, "vocabulary only", read)


REVIEWS = _unlabelled("imdb/train")


def _task(name: str, labels: tuple[str, ...], classes: Callable[[int], int | None]) -> Task:
    return Task(
        name=name,
        kind="classification",
        labels=labels,
        train=(Source("sst", LICENCE, "every node of the train trees", phrases(classes)),),
        dev=Source("sst", LICENCE, "whole sentences", sentences("dev", classes)),
        test=Source("sst", LICENCE, "whole sentences", sentences("test", classes)),
        background=(REVIEWS,),
    )


WHOLE_TRAIN = Source("sst", LICENCE, "whole train sentences", sentences("train", five))
"""For tasks that learn from sentences instead of phrases."""

TASKS = (_task("sst5", FIVE, five), _task("sst2", TWO, two))
