"""Numbers that some of the papers' figures draw: MS-SAN's masks, LAMA's parameters and losses."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import nn

from heedful.models.registry import build
from heedful.text.structure import tree_distance
from heedful.training.errors import DataMissing

HEADS = range(1, 41)
LOSSES = ("lama", "lama-ctx", "san", "transformer-encoder")
"""Records of LAMA's Figure 5, by their names."""


def masks(heads: npt.NDArray[np.integer], alpha: float) -> dict[str, npt.NDArray[np.float64]]:
    """What eq. (6) gives, (L, L), if all scores are equal, by the name of MS-SAN's head."""
    position = np.arange(len(heads))
    word = np.abs(position[:, None] - position[None, :])
    kinds = {"word": word, "dependency": tree_distance(heads), "no": np.zeros_like(word)}
    ways = {"forward": np.tril, "backward": np.triu}
    found = {}
    for way, allowed in ways.items():
        for kind, distance in kinds.items():
            powers = allowed(np.exp(-alpha * distance))
            found[f"{way}, {kind} distance"] = powers / powers.sum(1, keepdims=True)
    return found


def attention_parameters() -> Mapping[str, list[int]]:
    """Parameters of the attention layers of LAMA, SAN and the transformer at the paper's sizes, by HEADS.

    A head of the transformer has 64 features, like each of the paper's 16 heads of 1024.
    """
    found: dict[str, list[int]] = {"LAMA": [], "SAN": [], "transformer": []}
    for heads in HEADS:
        found["LAMA"].append(_count(build("lama", {"heads": heads}), "attention"))
        found["SAN"].append(_count(build("san", {"heads": heads}), "attention"))
        wide = build("transformer", {"heads": heads, "size": 64 * heads})
        found["transformer"].append(_count(wide, "query", "key", "value", "output"))
    return found


def _count(encoder: nn.Module, *parts: str) -> int:
    modules = [encoder.get_submodule(part) for part in parts]
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def losses(results: Path) -> dict[str, list[float]]:
    """The train loss of each epoch by the row of LAMA's Figure 5, as far as the records have it. Raises DataMissing."""
    folder = results / "runs" / "lama-r8"
    files = [folder / f"{name}-seed1.json" for name in LOSSES]
    records = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
    found = {
        record["row"]: [epoch["loss"] for epoch in record["log"]]
        for record in records
        if "log" in record
    }
    if not found:
        raise DataMissing(f"{folder} holds no record with losses: heedful reproduce lama-r8")
    return found
