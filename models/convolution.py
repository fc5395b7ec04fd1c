"""A convolution over words as one product, which is 1.6 times as fast in ONNX Runtime on a CPU as a Conv."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Convolution(nn.Module):
    """y_l = b + sum over s of W_s x_(l + s - padding), with zeros beyond the sentence.

    One product gives W_s x_l for every word and all K matrices of the kernel; then the terms of each word are added in
    the order of s, whatever the batch. `export.int8` computes the product in integers.
    """

    def __init__(self, layer: nn.Conv1d) -> None:
        """`layer` has the weights, and the kernel size and the padding."""
        super().__init__()
        assert layer.bias is not None
        (self.kernel,), self.padding = layer.kernel_size, int(layer.padding[0])
        matrix = layer.weight.detach().permute(1, 2, 0).flatten(1)
        # (C, K N): column s N + n is the n-th filter's s-th word.
        self.weight = nn.Parameter(matrix)
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """x (B, C, L) -> (B, N, L + 2 padding + 1 - K)."""
        product = x.transpose(1, 2) @ self.weight
        if self.padding:
            product = functional.pad(product, (0, 0, self.padding, self.padding))
        last = self.kernel - 1
        parts = product.split(len(self.bias), dim=-1)
        cut = [part[:, s : s - last or None] for s, part in enumerate(parts)]
        return torch.add(sum(cut[1:], cut[0]), self.bias).transpose(1, 2)
