"""The four papers' figures, by matplotlib, from answers of /explain and from measurements.

The same numbers give the same bytes: no figure holds a date or draws at random.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image  # a dependency of matplotlib
from sklearn.decomposition import PCA

from heedful.library.explain_page import Answer
from heedful.text.arrays import AnyFloats

DPI = 100
COLOURS = "Blues"
SHADES = 96
SMALL = 7  # points, of words next to a map
BINS = (1, 10, 15, 20, 25, 30, 35, 40)
"""Shortest length of each bar in `accuracy_by_length`; the last bar is open."""


def png(figure: Figure) -> bytes:
    """Encode in SHADES colours, which halves the file."""
    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    Image.open(drawn).convert("RGB").quantize(SHADES).save(small, format="png", optimize=True)
    return small.getvalue()


def disan_attention(answers: Sequence[Answer]) -> Figure:
    """DiSAN, Figure 6: token2token attention of each block, one row per sentence."""
    figure = Figure(figsize=(6.4, 3.1 * len(answers)), layout="constrained")
    grid = figure.subplots(len(answers), 2, squeeze=False)
    for row, answer in zip(grid, answers, strict=True):
        (sentence,) = answer["sentences"]
        for axes, attention in zip(row, sentence["maps"], strict=True):
            words = _words(sentence)
            _map(axes, attention["weights"], words, words, attention["name"])
    return figure


def disan_gates(answers: Sequence[Answer]) -> Figure:
    """DiSAN, Figure 7: the fusion gate of each block by token, the mean over features."""
    figure = Figure(figsize=(6.4, 2.3 * len(answers)), layout="constrained")
    for axes, answer in zip(
        figure.subplots(len(answers), 1, squeeze=False)[:, 0], answers, strict=True
    ):
        (sentence,) = answer["sentences"]
        _bars(axes, _words(sentence), {gate["name"]: gate["weights"] for gate in sentence["gate"]})
        axes.set_ylim(0, 1)
        axes.set_ylabel("gate", fontsize=SMALL)
    return figure


def disan_pooling(answers: Sequence[Answer]) -> Figure:
    """DiSAN, Figure 8: source2token attention, the mean over features, two sentences a row."""
    figure = Figure(figsize=(6.4, 1.9 * len(answers) / 2), layout="constrained")
    places = figure.subplots(len(answers) // 2, 2, squeeze=False).ravel()
    for axes, answer in zip(places, answers, strict=True):
        (sentence,) = answer["sentences"]
        (pooling,) = sentence["pooling"]
        _bars(axes, _words(sentence), {pooling["name"]: pooling["weights"]})
    return figure


def ms_san_heads(answer: Answer, masks: Mapping[str, AnyFloats]) -> Figure:
    """MS-SAN, Figures 2 and 4: above each head's map, what its masks alone would give.

    `masks` are (L, L) by the name of the head's map.
    """
    (sentence,) = answer["sentences"]
    words, maps = _words(sentence), {each["name"]: each["weights"] for each in sentence["maps"]}
    names = list(maps)
    figure = Figure(figsize=(7.2, 9.2), layout="constrained")
    grid = figure.subplots(4, 3)
    for column in range(3):
        for half in range(2):
            name = names[3 * half + column]
            _map(grid[2 * half, column], masks[name], words, words, f"mask: {name}")
            _map(grid[2 * half + 1, column], maps[name], words, words, f"head: {name}")
    return figure


def attentions(answers: Sequence[Answer]) -> Figure:
    """DSA, Figures 3 and 4: one row per attention and iteration."""
    heights = [1.3 + 0.2 * len(answer["sentences"][0]["maps"]) for answer in answers]
    figure = Figure(figsize=(6.4, sum(heights)), layout="constrained")
    places = figure.subplots(len(answers), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, answer in zip(places, answers, strict=True):
        (sentence,) = answer["sentences"]
        weights = np.concatenate([np.asarray(each["weights"]) for each in sentence["maps"]])
        _map(axes, weights, [each["name"] for each in sentence["maps"]], _words(sentence), "")
    return figure


def dynamic_weights(vectors: AnyFloats, lengths: Sequence[int]) -> Figure:
    """DSA, Figure 2: vectors (N, d) by their two principal components, coloured by length."""
    points, shares = principal(vectors)
    figure = Figure(figsize=(4.8, 4.2), layout="constrained")
    axes = figure.subplots()
    drawn = axes.scatter(points[:, 0], points[:, 1], c=lengths, s=5, cmap="viridis", linewidths=0)
    first, second = (
        f"component {i}: {100 * share:.0f} % of the variance" for i, share in enumerate(shares, 1)
    )
    axes.set_xlabel(first, fontsize=SMALL + 1)
    axes.set_ylabel(second, fontsize=SMALL + 1)
    figure.colorbar(drawn, label="tokens")
    return figure


def principal(vectors: AnyFloats) -> tuple[AnyFloats, AnyFloats]:
    """Vectors (N, d) -> their first two principal components (N, 2) and shares of the variance (2,).

    The largest loading of each component is positive.
    """
    pca = PCA(2, svd_solver="full")
    return pca.fit_transform(vectors), pca.explained_variance_ratio_


def accuracy_by_length(series: Mapping[str, tuple[Sequence[int], Sequence[bool]]]) -> Figure:
    """DiSAN, Figure 5: for each model, the lengths of sentences and which answers were right.

    Error bars are one binomial standard error; the grey bars count the sentences.
    """
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(BINS))
    for i, (name, (lengths, right)) in enumerate(series.items()):
        bins = np.digitize(lengths, BINS) - 1
        counts = np.bincount(bins, minlength=len(BINS))
        means = np.bincount(bins, right, minlength=len(BINS)) / np.maximum(counts, 1)
        errors = np.sqrt(means * (1 - means) / np.maximum(counts, 1))
        filled = counts > 0
        axes.errorbar(
            places[filled] + 0.08 * i,
            means[filled],
            errors[filled],
            label=f"{name}, {np.mean(right):.3f} in all",
            marker="o",
            markersize=4,
            capsize=2,
        )
    background = axes.twinx()
    background.bar(places, counts, color="#d5dae0", width=0.7)
    background.set_ylabel("sentences", fontsize=SMALL + 1)
    axes.set_zorder(background.get_zorder() + 1)
    axes.patch.set_visible(False)
    ends = [f"-{after - 1}" for after in BINS[1:]] + ["+"]
    axes.set_xticks(
        places, [f"{first}{end}" for first, end in zip(BINS, ends, strict=True)], fontsize=SMALL
    )
    axes.set_xlabel("tokens", fontsize=SMALL + 1)
    axes.set_ylabel("accuracy", fontsize=SMALL + 1)
    axes.legend(fontsize=SMALL, loc="lower left")
    return figure


def weights_by_rating(words: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """LAMA, Figure 2: by word and rating, the word's weight in each review; boxes without outliers."""
    figure = Figure(figsize=(6.4, 2.2 * -(-len(words) // 3)), layout="constrained")
    places = figure.subplots(-(-len(words) // 3), 3, squeeze=False).ravel()
    for axes, (word, by_rating) in zip(places, words.items(), strict=False):
        labels = [f"{rating}\n{len(weights)}" for rating, weights in by_rating.items()]
        axes.boxplot(
            [list(weights) for weights in by_rating.values()],
            tick_labels=labels,
            showfliers=False,
            medianprops={"color": "#b3470b"},
        )
        axes.axhline(1, color="#8a949e", linewidth=0.8, linestyle=":")
        axes.set_title(word, fontsize=SMALL + 2)
        axes.tick_params(labelsize=SMALL)
    for axes in places[len(words) :]:
        axes.set_visible(False)
    figure.supylabel("weight, of an even share", fontsize=SMALL + 1)
    figure.supxlabel("rating, and reviews that hold the word", fontsize=SMALL + 1)
    return figure


def parameters_by_heads(heads: Sequence[int], counts: Mapping[str, Sequence[int]]) -> Figure:
    """LAMA, Figure 4: parameters of the attention layer, on a logarithmic axis."""
    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    axes = figure.subplots()
    for name, values in counts.items():
        axes.plot(heads, values, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("heads", fontsize=SMALL + 1)
    axes.set_ylabel("parameters of the attention", fontsize=SMALL + 1)
    axes.legend(fontsize=SMALL + 1)
    return figure


def words_by_class(weights: Mapping[str, Mapping[str, float]]) -> Figure:
    """LAMA, Table 4: by class, the words that weigh most, the heaviest first."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    places = figure.subplots(1, len(weights), squeeze=False)[0]
    for axes, (name, by_word) in zip(places, weights.items(), strict=True):
        axes.barh(list(by_word), list(by_word.values()))
        axes.invert_yaxis()
        axes.axvline(1, color="#8a949e", linewidth=0.8, linestyle=":")
        axes.set_title(name, fontsize=SMALL + 2)
        axes.tick_params(labelsize=SMALL)
    figure.supxlabel("weight, of an even share", fontsize=SMALL + 1)
    return figure


def loss_by_epoch(datasets: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """LAMA, Figure 5: the mean train loss of each epoch, on a logarithmic axis, a panel for each dataset."""
    figure = _by_epoch(datasets, "train loss")
    for axes in figure.axes:
        axes.set_yscale("log")
    return figure


def dev_by_epoch(datasets: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """LAMA, Figure 3: dev accuracy after each epoch, a panel for each dataset."""
    return _by_epoch(datasets, "dev accuracy")


def learning_curve(encoders: Mapping[str, Mapping[int, float]]) -> Figure:
    """Dev accuracy over the number of pairs, on a logarithmic axis, a line for each encoder."""
    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    axes = figure.subplots()
    _lines(axes, encoders, "train pairs", "dev accuracy")
    axes.set_xscale("log")
    counts = sorted({count for scores in encoders.values() for count in scores})
    axes.set_xticks(counts, [f"{count:,}" for count in counts], fontsize=SMALL)
    axes.minorticks_off()
    return figure


def _by_epoch(datasets: Mapping[str, Mapping[str, Sequence[float]]], what: str) -> Figure:
    """A panel for each dataset."""
    figure = Figure(figsize=(1.2 + 3.6 * len(datasets), 3.4), layout="constrained")
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    for axes, (dataset, series) in zip(panels, datasets.items(), strict=True):
        by_epoch = {name: dict(enumerate(values, 1)) for name, values in series.items()}
        _lines(axes, by_epoch, "epoch", what)
        axes.set_title(dataset, fontsize=SMALL + 1)
    return figure


def _lines(axes: Axes, series: Mapping[str, Mapping[int, float]], over: str, what: str) -> None:
    """A line for each series."""
    for name, values in series.items():
        axes.plot([*values], [*values.values()], label=name, marker="o", markersize=3)
    axes.set_xlabel(over, fontsize=SMALL + 1)
    axes.set_ylabel(what, fontsize=SMALL + 1)
    axes.legend(fontsize=SMALL + 1)


def _map(axes: Axes, weights: Any, rows: Sequence[str], columns: Sequence[str], title: str) -> None:
    """Rows attend to columns; white is 0, the darkest 1."""
    values = np.asarray(weights, np.float64)
    axes.imshow(values, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=SMALL)
    axes.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=SMALL + 1)


def _bars(axes: Axes, words: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """One bar per token and series, side by side."""
    width = 0.8 / len(series)
    for i, (name, weights) in enumerate(series.items()):
        places = np.arange(len(words)) + width * (i - (len(series) - 1) / 2)
        axes.bar(places, weights, width, label=name)
    axes.set_xticks(range(len(words)), words, rotation=60, fontsize=SMALL)
    axes.tick_params(axis="y", labelsize=SMALL)
    if len(series) > 1:
        axes.legend(fontsize=SMALL)
    else:
        axes.set_title(next(iter(series)), fontsize=SMALL + 1)


def _words(sentence: Mapping[str, Any]) -> list[str]:
    return [token["text"] for token in sentence["tokens"]]
