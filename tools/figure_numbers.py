"""Numbers in some of the papers' figures: MS-SAN's masks, LAMA's parameters, losses and dev scores."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from heedful.models.masks import doubling_rounds, tree_distance
from heedful.models.registry import build
from heedful.text.arrays import Doubles, Ints
from heedful.training.errors import DataMissing

HEADS = range(1, 41)
LOSSES = ("lama", "lama-ctx", "san", "transformer-encoder")
"""Records of LAMA's Figure 5, by their names, in the tables LOSS_TABLES."""
LOSS_TABLES = {"R8": "lama-r8", "News": "lama-news"}
HEADS_TABLES = {"Yelp": "lama-heads", "IMDB": "lama-imdb-heads"}
CURVE_TABLE = "learning-curve"


def masks(heads: Ints, alpha: float) -> dict[str, Doubles]:
    """The weights (L, L) of eq. (6) for equal scores, by the name of MS-SAN's head."""
    position = np.arange(len(heads))
    word = np.abs(position[:, None] - position[None, :])
    [tree] = tree_distance(torch.from_numpy(heads)[None], doubling_rounds(len(heads))).numpy()
    kinds = {"word": word, "dependency": tree, "no": np.zeros_like(word)}
    ways = {"forward": np.tril, "backward": np.triu}
    weights = {}
    for way, allowed in ways.items():
        for kind, distance in kinds.items():
            powers = allowed(np.exp(-alpha * distance))
            weights[f"{way}, {kind} distance"] = powers / powers.sum(1, keepdims=True)
    return weights


def attention_parameters() -> Mapping[str, list[int]]:
    """Parameters of the attention layers of LAMA, SAN and the transformer at the paper's sizes, by HEADS.

    A head of the transformer has 64 features, like each of the paper's 16 heads of 1024.
    """
    counts: dict[str, list[int]] = {"LAMA": [], "SAN": [], "transformer": []}
    with torch.device("meta"):  # counts need no weights
        for heads in HEADS:
            counts["LAMA"].append(_count(build("lama", {"heads": heads}), "attention"))
            counts["SAN"].append(_count(build("san", {"heads": heads}), "attention"))
            wide = build("transformer", {"heads": heads, "size": 64 * heads})
            counts["transformer"].append(_count(wide, "query", "key", "value", "output"))
    return counts


def _count(encoder: nn.Module, *parts: str) -> int:
    modules = [encoder.get_submodule(part) for part in parts]
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def losses(results: Path) -> dict[str, dict[str, list[float]]]:
    """The train loss of each epoch by dataset and row of LAMA's Figure 5, where a record has it.

    Raises DataMissing.
    """

    def files(runs: Path) -> list[Path]:
        return [runs / f"{name}-seed1.json" for name in LOSSES]

    return _by_dataset(results, LOSS_TABLES, files, "loss")


def dev_by_heads(results: Path) -> dict[str, dict[str, list[float]]]:
    """The dev accuracy of each epoch by dataset and number of heads of LAMA, its Figure 3. Raises DataMissing."""

    def files(runs: Path) -> list[Path]:
        return sorted(runs.glob("*-seed1.json"), key=lambda file: int(file.name.partition("-")[0]))

    return _by_dataset(results, HEADS_TABLES, files, "dev")


def learning_curve(results: Path) -> dict[str, dict[int, float]]:
    """The best dev accuracy by encoder and number of pairs. Raises DataMissing."""
    curves: dict[str, dict[int, float]] = {}
    for file in (results / "runs" / CURVE_TABLE).glob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        encoder, _, _ = record["row"].partition(",")
        pairs = sum(source["rows"] for source in record["data"])
        curves.setdefault(encoder, {})[pairs] = record["dev"]["value"]
    if not curves:
        raise _not_run(results, [CURVE_TABLE])
    return {encoder: dict(sorted(curves[encoder].items())) for encoder in sorted(curves)}


def _not_run(results: Path, tables: Iterable[str]) -> DataMissing:
    return DataMissing(
        f"{results} holds no such record: python -m tools reproduce {', '.join(tables)}"
    )


def _by_dataset(
    results: Path, tables: Mapping[str, str], files: Callable[[Path], list[Path]], value: str
) -> dict[str, dict[str, list[float]]]:
    """`_by_epoch` for each dataset; `files` lists the records in the folder of its table. Raises DataMissing."""
    by_dataset = {}
    for dataset, table in tables.items():
        if series := _by_epoch(files(results / "runs" / table), value):
            by_dataset[dataset] = series
    if not by_dataset:
        raise _not_run(results, tables.values())
    return by_dataset


def _by_epoch(files: Iterable[Path], value: str) -> dict[str, list[float]]:
    """A value of each epoch in the records' logs, by row; records without a log are left out."""
    records = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
    return {
        record["row"]: [epoch[value] for epoch in record["log"]]
        for record in records
        if "log" in record
    }
