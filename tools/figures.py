"""figures: the four papers' figures, from the models of a folder."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.figure import Figure
from rich.console import Console

from heedful.cli.options import DATA, Data
from heedful.files.atomic import write_file
from heedful.library.explain_page import Answer
from heedful.runtime.bundles.card import Card
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service, running
from heedful.training import tasks
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import Example
from tools import figure_numbers, figure_plots
from tools.options import Results

SEED = 1
CASES = (
    "Volleyball match is in progress between ladies",
    "Families have some dogs in front of a carousel",
)
"""Sentences of DiSAN's Figures 6 and 7."""
SENSES = (
    *("The glass bottle is big", "A man is pouring a glass of tea"),
    *("The restaurant is about to close", "A biker is close to the fountain"),
)
"""Sentences of DiSAN's Figure 8."""
KIDS = "Two kids at a ballgame wash their hands"
SENTENCES = 1000
"""Number of SNLI sentences in DSA's Figure 2."""
OPINIONS = ("amazing", "happy", "recommend", "poor", "terrible", "worst")
REVIEWS = 1000
LAMAS = ("lama", "lama-ctx")
CLASSES = {"r8": ("shipping", "foreign exchange"), "yelp": ("1", "5")}
"""Classes in LAMA's Table 4 by task; SEEN is how many texts hold a word of the TOP ones."""
SEEN, TOP = 4, 20
MAX_TOKENS = 128
"""Reviews are cut to the length that the service explains."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a figure is drawn from: a service, the card of the bundle that was chosen, the datasets, the records."""

    service: Service
    card: Card
    data: Path
    results: Path

    async def explain(self, text: str) -> Answer:
        request = self.service.bind("explain", self.card.name)
        inputs = Inputs.from_texts([text], "the text")
        result = await self.service.answer(request.explain(inputs, ExplainOptions()))
        return result.value.answer(result.card.name)

    async def explain_all(self, texts: tuple[str, ...]) -> list[Answer]:
        return [await self.explain(text) for text in texts]


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A file of docs/figures, the bundles it can be drawn from (`fits` is None for any), and how."""

    file: str
    wanted: str
    fits: Callable[[Card], bool] | None
    draw: Callable[[Context], Awaitable[Figure]]


def command(
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("docs/figures"),
    bundles: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
    parser: Annotated[
        str | None,
        typer.Option(help="spaCy pipeline; default <bundles>/parser, or the shipped one."),
    ] = None,
    data: Data = DATA,
    results: Results = Path("results"),
) -> None:
    """Draw the papers' figures from the bundles: attention, gates, accuracy by length."""
    draw(out, Options(bundles, parser, "cpu"), data, results, Console())


def draw(out: Path, options: Options, data: Path, results: Path, console: Console) -> list[Path]:
    """Write every figure that the bundles, datasets and records allow; print which ones are left out, and why."""
    out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_draw(out, options, data, results, console))


async def _draw(
    out: Path, options: Options, data: Path, results: Path, console: Console
) -> list[Path]:
    written = []
    async with running(options) as service:
        for kind in FIGURES:
            card = next(filter(kind.fits, service.registry.cards.values()), None)
            if card is None:
                console.print(f"{kind.file}: left out, {options.models} has no {kind.wanted}")
                continue
            try:
                figure = await kind.draw(Context(service, card, data, results))
            except DataMissing as error:
                console.print(f"{kind.file}: left out, {error}")
                continue
            content = figure_plots.png(figure)
            file = out / kind.file
            write_file(file, partial(Path.write_bytes, data=content))
            console.print(f"{file}: {len(content):,} bytes")
            written.append(file)
    return written


async def _disan_attention(context: Context) -> Figure:
    return figure_plots.disan_attention(await context.explain_all(CASES))


async def _disan_gates(context: Context) -> Figure:
    return figure_plots.disan_gates(await context.explain_all(CASES))


async def _disan_pooling(context: Context) -> Figure:
    return figure_plots.disan_pooling(await context.explain_all(SENSES))


async def _ms_san_heads(context: Context) -> Figure:
    explanation = await context.explain(KIDS)
    (sentence,) = explanation["sentences"]
    heads = np.array([token["head"] for token in sentence["tokens"]])
    return figure_plots.ms_san_heads(
        explanation, figure_numbers.masks(heads, explanation["priors"]["alpha"])
    )


async def _accuracy_by_length(context: Context) -> Figure:
    """Score every bundle of five classes on the dev split of SST-5."""
    task = tasks.get("sst5")
    examples = task.dev.read(context.data)
    series = {}
    for card in context.service.registry.cards.values():
        if set(card.labels) != set(task.labels):
            continue
        lengths: list[int] = []
        right: list[bool] = []
        for example in examples:
            inputs = Inputs.from_texts(example.texts)
            result = await context.service.answer(
                context.service.bind("classify", card.name).classify(inputs, truncate=True)
            )
            lengths.append(result.tokens)
            right.append(card.labels[result.value[0].argmax()] == task.labels[int(example.label)])
        series[card.name] = (lengths, right)
    return figure_plots.accuracy_by_length(series)


async def _dsa_attention(context: Context) -> Figure:
    return figure_plots.attentions(await context.explain_all((KIDS, *CASES)))


async def _dsa_multiple(context: Context) -> Figure:
    """The weights of each attention at its last iteration."""
    answers = await context.explain_all((KIDS, *CASES))
    for answer in answers:
        (sentence,) = answer["sentences"]
        last = sentence["maps"][-1]["name"].partition(", ")[2]
        sentence["maps"] = [
            weights for weights in sentence["maps"] if weights["name"].endswith(last)
        ]
    return figure_plots.attentions(answers)


async def _dynamic_weights(context: Context) -> Figure:
    """z_1 of the last iteration but one, whose products with the words give the final weights."""
    examples = tasks.get("snli").dev.read(context.data)
    texts = sorted({text for example in examples for text in example.texts})
    vectors, lengths = [], []
    for text in random.Random(SEED).sample(texts, min(SENTENCES, len(texts))):
        result = await context.service.answer(
            context.service.bind("explain", context.card.name).explain(
                Inputs([text], ["the text"]), ExplainOptions(), truncate=True
            )
        )
        (sentence,) = result.value.sentences
        iterations = [w[0] for name, w in sentence.maps.items() if name.startswith("attention 1,")]
        attentions = len(sentence.maps) // len(iterations)
        dim = sentence.states.shape[-1] // attentions
        words = sentence.states[0][:, :dim]  # (L, d), as W_1 sees them
        before = iterations[-2] if len(iterations) > 1 else iterations[-1]  # (1, L)
        vectors.append(np.tanh(before @ words)[0])
        lengths.append(len(words))
    return figure_plots.dynamic_weights(np.array(vectors), lengths)


async def _weights_by_rating(context: Context) -> Figure:
    """The mean weight of the heads, relative to uniform weights; reviews are cut to MAX_TOKENS."""
    task = tasks.get(context.card.task)
    examples = task.test.read(context.data)
    weights: dict[str, dict[str, list[float]]] = {
        word: {label: [] for label in task.labels} for word in OPINIONS
    }
    holding = [e for e in examples if any(word in e.texts[0].lower() for word in OPINIONS)]
    drawn = random.Random(SEED).sample(holding, min(REVIEWS, len(holding)))
    async for example, word, weight in _word_weights(context, drawn):
        if word in weights:
            weights[word][task.labels[int(example.label)]].append(weight)
    return figure_plots.weights_by_rating(weights)


async def _words_by_class(context: Context) -> Figure:
    """The words with the highest mean weight in the test texts of each class, of those in SEEN texts or more."""
    task = tasks.get(context.card.task)
    examples = task.test.read(context.data)
    top_words = {}
    for label in CLASSES[context.card.task]:
        of_class = [e for e in examples if task.labels[int(e.label)] == label]
        weights: dict[str, dict[int, list[float]]] = {}
        async for example, word, weight in _word_weights(context, of_class):
            if word.isalpha():
                weights.setdefault(word, {}).setdefault(id(example), []).append(weight)
        means = {
            word: float(np.mean([weight for part in by_text.values() for weight in part]))
            for word, by_text in weights.items()
            if len(by_text) >= SEEN
        }
        top_words[label] = dict(sorted(means.items(), key=lambda item: -item[1])[:TOP])
    return figure_plots.words_by_class(top_words)


async def _word_weights(
    context: Context, examples: Sequence[Example]
) -> AsyncIterator[tuple[Example, str, float]]:
    """Each word of each text, in lower case, with the mean weight of the heads relative to uniform weights."""
    for example in examples:
        result = await context.service.answer(
            context.service.bind("explain", context.card.name).explain(
                Inputs(example.texts, ["the text"]), ExplainOptions(), truncate=True
            )
        )
        (text,) = result.value.texts
        (weights,) = next(iter(result.value.sentences[0].pooling.values()))
        for token, weight in zip(text.parse.tokens, weights.tolist(), strict=True):
            yield example, token.lower(), weight * len(weights)


async def _loss_by_epoch(context: Context) -> Figure:
    return figure_plots.loss_by_epoch(figure_numbers.losses(context.results))


async def _dev_by_heads(context: Context) -> Figure:
    return figure_plots.dev_by_epoch(figure_numbers.dev_by_heads(context.results))


async def _learning_curve(context: Context) -> Figure:
    return figure_plots.learning_curve(figure_numbers.learning_curve(context.results))


async def _parameters_by_heads(_: Context) -> Figure:
    return figure_plots.parameters_by_heads(
        figure_numbers.HEADS, figure_numbers.attention_parameters()
    )


def _encoded_by(encoder: str) -> Callable[[Card], bool]:
    return lambda card: card.encoder.name in (encoder, f"{encoder}-multiple")


def _lama(task: str) -> Callable[[Card], bool]:
    return lambda card: card.encoder.name in LAMAS and card.task == task


FIGURES = (
    PaperFigure("disan-attention.png", "bundle of DiSAN", _encoded_by("disan"), _disan_attention),
    PaperFigure("disan-gates.png", "bundle of DiSAN", _encoded_by("disan"), _disan_gates),
    PaperFigure("disan-pooling.png", "bundle of DiSAN", _encoded_by("disan"), _disan_pooling),
    PaperFigure(
        "ms-san-heads.png",
        "bundle of MS-SAN for NLI",
        lambda card: card.encoder.name == "ms-san" and card.kind == "nli",
        _ms_san_heads,
    ),
    PaperFigure(
        "accuracy-by-length.png",
        "bundle of DiSAN for SST-5",
        lambda card: card.encoder.name == "disan" and card.task == "sst5",
        _accuracy_by_length,
    ),
    PaperFigure("dsa-attention.png", "bundle of DSA", _encoded_by("dsa"), _dsa_attention),
    PaperFigure(
        "dsa-multiple.png",
        "bundle of multiple DSA",
        lambda card: card.encoder.name == "dsa-multiple",
        _dsa_multiple,
    ),
    PaperFigure("dsa-dynamic-weights.png", "bundle of DSA", _encoded_by("dsa"), _dynamic_weights),
    PaperFigure("lama-rating.png", "bundle of LAMA for IMDB", _lama("imdb"), _weights_by_rating),
    PaperFigure(
        "lama-rating-yelp.png", "bundle of LAMA for Yelp", _lama("yelp"), _weights_by_rating
    ),
    PaperFigure("lama-words.png", "bundle of LAMA for R8", _lama("r8"), _words_by_class),
    PaperFigure("lama-words-yelp.png", "bundle of LAMA for Yelp", _lama("yelp"), _words_by_class),
    PaperFigure("lama-parameters.png", "bundle", None, _parameters_by_heads),
    PaperFigure("lama-loss.png", "bundle", None, _loss_by_epoch),
    PaperFigure("lama-heads.png", "bundle", None, _dev_by_heads),
    PaperFigure("learning-curve.png", "bundle", None, _learning_curve),
)
