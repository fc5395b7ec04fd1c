"""The sentence vector of a transformer as it is: what sentence-transformers serves."""

from torch import Tensor
from torch.nn import functional

from heedful.models.sentence import Encoder


class Pooled(Encoder):
    """Gives the vector that the transformer's pieces are pooled to, scaled to length 1 with `normalize`."""

    inputs = ("cls",)

    def __init__(self, dim: int, *, normalize: bool) -> None:
        super().__init__()
        self.dim, self.normalize = dim, normalize

    def forward(self, _x: Tensor, _lengths: Tensor, cls: Tensor) -> Tensor:
        """The words (B, L, dim) and their number are not read; cls (B, dim) -> (B, dim)."""
        return functional.normalize(cls, dim=-1) if self.normalize else cls
