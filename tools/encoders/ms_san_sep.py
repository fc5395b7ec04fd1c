"""MS-SAN-sep (Qi et al. 2020, Table 3): an encoder for each direction, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from heedful.models.ms_san import MSSAN
from heedful.models.sentence import Encoder, Explanation


class Concatenated(Encoder):
    """Several encoders of the same words and structure, whose sentence vectors are concatenated.

    All have the same size and the same names in their explanations.
    """

    def __init__(self, *encoders: Encoder) -> None:
        super().__init__()
        self.dim = sum(encoder.dim for encoder in encoders)
        self.inputs, self.priors = encoders[0].inputs, encoders[0].priors
        self.encoders = nn.ModuleList(encoders)

    def forward(self, x: Tensor, lengths: Tensor, **structure: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,), structure as each reads it -> (B, dim)."""
        return torch.cat([encode(x, lengths, **structure) for encode in self.encoders], dim=-1)

    def explain(self, x: Tensor, lengths: Tensor, **structure: Tensor) -> Explanation:
        """The maps of all encoders, and the means of their poolings and gates."""
        explanations: list[Explanation] = [
            encoder.explain(x, lengths, **structure)  # type: ignore[operator]  # nn.Module hides it
            for encoder in self.encoders
        ]
        return Explanation(
            torch.cat([explanation.sentence for explanation in explanations], dim=-1),
            torch.cat([explanation.states for explanation in explanations], dim=-1),
            pooling=_means([explanation.pooling for explanation in explanations]),
            maps={
                f"encoder {i}, {name}": weights
                for i, explanation in enumerate(explanations, start=1)
                for name, weights in explanation.maps.items()
            },
            gate=_means([explanation.gate for explanation in explanations]),
        )


def _means(named: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """(B, L) of each encoder by name -> their mean (B, L) by name."""
    return {name: torch.stack([each[name] for each in named]).mean(0) for name in named[0]}


def ms_san_sep(*, direction: bool = True, max_tokens: int = 256, **config: Any) -> Concatenated:
    """MS-SAN-sep (Table 3): two whole encoders, one with forward masks only, one with backward only.

    Each kind of distance has two heads in each encoder. Without `direction` both encoders look both ways;
    `config` holds the other keywords of MSSAN.
    """
    ways = ("forward", "backward") if direction else (False, False)
    return Concatenated(*(MSSAN(direction=way, max_tokens=max_tokens, **config) for way in ways))
