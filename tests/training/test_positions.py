"""Sinusoidal positions and the words that they are added to."""

from pathlib import Path

import pytest
import torch
from torch import nn

from heedful.models.positions import sinusoids
from heedful.models.registry import build
from heedful.training import config, vectors


@pytest.mark.parametrize(("name", "times"), [("multi-head-s2t-nli", 2), ("transformer-r8", 1)])
@torch.no_grad()
def test_words_are_not_shorter_than_their_positions(name: str, times: float) -> None:
    """At words.init_rms 3, positions were four times as long, and multi-head attention lost eight points."""
    run = config.read(Path(f"configs/{name}.toml"))
    torch.manual_seed(1)
    encoder = build(run.encoder.name, run.encoder_keywords())
    noise = torch.randn(200, run.words.dim).numpy()
    known = torch.ones(200, dtype=torch.bool).numpy()
    words = vectors.initial(noise, known, dim=run.words.dim, scale=run.words.init_rms, seed=1)
    project = getattr(encoder, "project", nn.Identity())
    read = project(words)
    positions = sinusoids(torch.arange(20.0), read.shape[1])
    ratio = read.norm(dim=1).mean() / positions.norm(dim=1).mean()
    assert float(ratio) == pytest.approx(times, rel=0.2)
