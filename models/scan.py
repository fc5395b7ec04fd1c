"""A loop over tokens that is exported as one ONNX Scan node."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def scan(
    step: Callable[..., tuple[Tensor, ...]],
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    constants: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """`step(*carry, *x, *constants) -> (*carry, *outputs)` for each x along the first axis of `xs`.

    Returns the outputs, stacked along a new first axis. `step` may read nothing but its arguments
    and returns no tensor twice and none of its arguments: torch refuses to export it otherwise.
    """
    kept = len(carry)
    if torch.compiler.is_exporting():
        results = torch.ops.higher_order.scan(step, list(carry), list(xs), tuple(constants))
        return tuple(results[kept:])
    # torch's scan compiles its step first: in training a plain loop is simpler and as fast.
    state, outputs = tuple(carry), []
    for x in zip(*(tensor.unbind() for tensor in xs), strict=True):
        results = step(*state, *x, *constants)
        state = results[:kept]
        outputs.append(results[kept:])
    return tuple(torch.stack(output) for output in zip(*outputs, strict=True))
