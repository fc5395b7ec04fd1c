"""Zero-shot labels: accuracy by majority, cosine, entailment, both, and both with polarity; and the two weights.

Reads dev and train splits, never test. The tables go to docs/notes/zero-shot.md.

    python -m benchmarks.zero_shot --rows 500 --seed 1
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.options import BUNDLES, Models
from heedful import load
from heedful.library.model import Model
from heedful.runtime import zero_shot
from heedful.training import tasks
from heedful.training.data_folder import data_folder

tasks.add("tools.tasks")
Texts = tuple[list[str], list[str]]
"""Texts, and the label of each."""

SETS: Mapping[str, Mapping[str, str]] = {
    "sst2": {},
    "trec": {
        "abbreviation": "an abbreviation",
        "description": "a description",
        "entity": "an entity",
        "person": "a person",
        "location": "a location",
        "number": "a number",
    },
    "news": {},
    "r8": {},
    "cr": {},
    "mpqa": {},
    "yelp": {"1": "negative", "2": "negative", "3": "", "4": "positive", "5": "positive"},
}
"""Task -> label -> the words for it, where the label's own do not do; texts of a label with none are left out."""
DEV = ("sst2",)
"""Sets with a dev split of whole sentences; the others give a sample of train."""
WEIGHTS = {
    "COSINE_WEIGHT": (10.0, 20.0, 30.0, 40.0, 60.0),
    "POLARITY_WEIGHT": (0.0, 1.0, 2.0, 4.0, 8.0),
}
FOREIGN = (("sst2", "r8"), ("sst2", "trec"), ("trec", "r8"), ("r8", "trec"), ("news", "trec"))
"""A set's texts, and another set's labels, none of which fits. (A film is entertainment, Reuters' news is business.)"""


def main(
    rows: Annotated[int, typer.Option(help="Texts of each set.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 1,
    models: Models = BUNDLES,
) -> None:
    """Measure, and print the tables."""
    words = {name: _words(name) for name in SETS}
    texts = {name: _sample(name, rows, seed) for name in SETS}
    with (
        load("ms-san-embed", models=models) as embedding,
        load("ms-san-nli", models=models) as nli,
        load("ms-san-sentiment", models=models) as sentiment,
    ):
        all_three: dict[str, Any] = {"nli": nli, "sentiment": sentiment}

        def accuracy(name: str, model: Model, **options: Any) -> float:
            sample, gold = texts[name]
            answers = model.classify(sample, words[name], **options)
            right = [answer.label == label for answer, label in zip(answers, gold, strict=True)]
            return float(np.mean(right))

        typer.echo(
            "| set | rows | labels | majority | cosine | entailment | both | all three | one template |"
        )
        typer.echo("|---|---|---|---|---|---|---|---|---|")
        for name, (sample, gold) in texts.items():
            figures = [
                Counter(gold).most_common(1)[0][1] / len(gold),
                accuracy(name, embedding),
                accuracy(name, nli),
                accuracy(name, embedding, nli=nli),
                accuracy(name, embedding, **all_three),
                accuracy(name, embedding, hypothesis_template=zero_shot.TEMPLATES[0], **all_three),
            ]
            typer.echo(f"| {name} | {len(sample)} | {len(words[name])} |{_cells(figures)}")

        for constant, weights in WEIGHTS.items():
            typer.echo(f"\n| {constant} |" + "".join(f" {weight:g} |" for weight in weights))
            typer.echo("|---|" + "---|" * len(weights))
            for name in SETS:
                figures = []
                for weight in weights:
                    with patch.object(zero_shot, constant, weight):
                        figures.append(accuracy(name, embedding, **all_three))
                typer.echo(f"| {name} |{_cells(figures)}")

        def none_fits(name: str, labels: str) -> float:
            """The share of texts whose answer is that no label fits."""
            answers = embedding.classify(texts[name][0], words[labels], **all_three)
            return float(np.mean([answer.none > 0.5 for answer in answers]))

        def several(name: str) -> list[float]:
            """With multi_label, the shares of the right labels and of the wrong ones that are answered to fit."""
            sample, gold = texts[name]
            answers = embedding.classify(sample, words[name], multi_label=True, **all_three)
            right = [
                answer.scores[label] > 0.5 for answer, label in zip(answers, gold, strict=True)
            ]
            wrong = [
                score > 0.5
                for answer, label in zip(answers, gold, strict=True)
                for other, score in answer.scores.items()
                if other != label
            ]
            return [float(np.mean(right)), float(np.mean(wrong))]

        typer.echo("\n| texts | labels | none fits |\n|---|---|---|")
        for name, labels in [*((name, name) for name in SETS), *FOREIGN]:
            typer.echo(f"| {name} | {labels} |{_cells([none_fits(name, labels)])}")
        typer.echo(
            "\n| set, multi_label | right labels that fit | wrong labels that fit |\n|---|---|---|"
        )
        for name in SETS:
            typer.echo(f"| {name} |{_cells(several(name))}")


def _words_of_labels(name: str) -> list[str]:
    """The words for each label of a task; "" for a label whose texts are left out."""
    return [SETS[name].get(label, label) for label in tasks.get(name).labels]


def _words(name: str) -> list[str]:
    return list(dict.fromkeys(filter(None, _words_of_labels(name))))


def _sample(name: str, rows: int, seed: int) -> Texts:
    task, words = tasks.get(name), _words_of_labels(name)
    examples = [
        example
        for example in (task.dev if name in DEV else task.train[0]).read(data_folder())
        if words[int(example.label)]
    ]
    order = np.sort(np.random.default_rng(seed).permutation(len(examples))[:rows])
    chosen = [examples[i] for i in order]
    return [row.texts[0] for row in chosen], [words[int(row.label)] for row in chosen]


def _cells(figures: Sequence[float]) -> str:
    return "".join(f" {figure:.3f} |" for figure in figures)


if __name__ == "__main__":
    typer.run(main)
