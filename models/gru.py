"""A bidirectional GRU that ignores padding, in torch and in the exported graph."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiGRU(nn.Module):
    """Both directions of a GRU, LAMA eq. (3.1)-(3.4) and (3.6); the backward one starts at a sentence's last token.

    torch's layer adds a bias to W_h x that eq. (3.3) does not print, and its update gate is the paper's 1 - z.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,) -> (B, L, 2 hidden), zero on padding."""
        if torch.onnx.is_in_onnx_export():
            return self._onnx(x, lengths)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.layer(packed)[0], batch_first=True, total_length=x.shape[1]
        )
        return states

    def _onnx(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same as one ONNX GRU node, which reads the lengths.

        torch.export unrolls nn.GRU over the example's length, packed or not.
        """
        batch, longest, _ = x.shape
        hidden = self.layer.hidden_size
        biases = torch.cat([self._both("bias_ih"), self._both("bias_hh")], dim=1)
        states = torch.onnx.ops.symbolic(
            "GRU",
            (
                x.transpose(0, 1),
                self._both("weight_ih"),
                self._both("weight_hh"),
                biases,
                lengths.int(),
            ),
            {"direction": "bidirectional", "hidden_size": hidden, "linear_before_reset": 1},
            dtype=x.dtype,
            shape=(longest, 2, batch, hidden),
        )
        return states.permute(2, 0, 1, 3).flatten(2)

    def _both(self, kind: str) -> Tensor:
        """One parameter of both directions (2, 3 hidden, ...), its gates in ONNX's order."""
        directions = []
        for suffix in ("_l0", "_l0_reverse"):
            reset, update, new = self.layer.get_parameter(kind + suffix).chunk(3)
            directions.append(torch.cat([update, reset, new]))
        return torch.stack(directions)
