"""What tests of models share. The papers' other encoders are in the registry too."""

import torch
from torch import nn

import tools.encoders  # noqa: F401
from heedful.models.convolution import Convolution
from tests.reference.arithmetic import Array

torch.set_num_threads(1)  # small tensors: a second thread only waits for the first


def array(tensor: torch.Tensor) -> Array:
    return tensor.detach().double().numpy()


def kernel_of(layer: Convolution) -> Array:
    """(N, C, K)."""
    matrix = array(layer.weight)
    return matrix.reshape(len(matrix), layer.kernel, -1).transpose(2, 0, 1)


def randomise(module: nn.Module, scale: float = 0.5) -> None:
    """In float64, every parameter and running mean random: fresh norms and zero biases would hide mistakes."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.double().eval().parameters():
            parameter.copy_(torch.randn_like(parameter) * scale)
        for name, buffer in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
