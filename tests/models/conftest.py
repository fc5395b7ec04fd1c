"""What tests of models share. The papers' other encoders are in the registry too."""

import numpy as np
import torch
from torch import nn

import tools.encoders  # noqa: F401
from heedful.models.convolution import Convolution
from tests.reference.arithmetic import Array

torch.set_num_threads(1)  # small tensors: a second thread only waits for the first


def array(tensor: torch.Tensor) -> Array:
    return tensor.detach().double().numpy()


def encoded(model: nn.Module, x: Array, **structure: torch.Tensor) -> Array:
    """The vector of the one sentence x (L, D); `test_encoders` shows that a batch changes none."""
    vectors = model(torch.tensor(x)[None], torch.tensor([len(x)]), **structure)
    return array(vectors[0])


def close(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def linear(module: nn.Module, name: str = "") -> tuple[Array, Array]:
    """Weight and bias of a layer, zeros where it has none."""
    layer = module.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    bias = np.zeros(layer.out_features) if layer.bias is None else array(layer.bias)
    return array(layer.weight), bias


def layers(module: nn.Module) -> list[tuple[Array, Array]]:
    """The linear layers, in the order they are applied."""
    return [linear(one) for one in module.modules() if isinstance(one, nn.Linear)]


def convolutions(module: nn.Module) -> list[tuple[Array, Array]]:
    """Weight (N, C, K) and bias of each, in the order they are applied."""
    found = []
    for layer in module.modules():
        if isinstance(layer, Convolution):
            matrix = array(layer.weight)
            kernels = matrix.reshape(len(matrix), layer.kernel, -1).transpose(2, 0, 1)
            found.append((kernels, array(layer.bias)))
    return found


def randomise(module: nn.Module, scale: float = 0.5) -> None:
    """In float64, every parameter and running mean random: fresh norms and zero biases would hide mistakes."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.double().eval().parameters():
            parameter.copy_(torch.randn_like(parameter) * scale)
        for name, buffer in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
