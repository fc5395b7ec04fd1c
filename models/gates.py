"""Gates that mix a token's input with the output of attention."""

import torch
from torch import Tensor, nn


class FusionGate(nn.Module):
    """MS-SAN eq. (7)-(9): both sides are projected, then mixed feature by feature.

    f = sigmoid(W_1 I' + W_2 O' + b), out = f * I' + (1 - f) * O' with I' = W_I I, O' = W_O O.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project_input = nn.Linear(dim, dim, bias=False)  # W_I
        self.project_output = nn.Linear(dim, dim, bias=False)  # W_O
        self.gate_input = nn.Linear(dim, dim, bias=False)  # W_1
        self.gate_output = nn.Linear(dim, dim)  # W_2 and b

    def forward(self, inputs: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Two (B, L, D) -> their mixture and the gate f, (B, L, D) each."""
        i, o = self.project_input(inputs), self.project_output(outputs)
        f = torch.sigmoid(self.gate_input(i) + self.gate_output(o))
        return f * i + (1 - f) * o, f
