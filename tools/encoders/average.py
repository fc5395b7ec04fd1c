"""The mean of the word vectors, which LAMA is compared with (Mehta et al., 2019, section 4.3)."""

from torch import Tensor

from heedful.models.masks import token_mask
from heedful.models.pooling import mean_pooling
from heedful.models.sentence import Encoder, Explanation


def mean_share(mask: Tensor) -> Tensor:
    """mask (B, L) boolean -> (B, L), the weight of each token in the mean."""
    return mask.float() / mask.sum(dim=1, keepdim=True)


class Average(Encoder):
    """The mean of the word vectors (AVG), without parameters."""

    def __init__(self, *, dim: int = 100) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, D)."""
        return mean_pooling(x, token_mask(lengths, x.shape[1]))

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """Every token has the same weight."""
        mask = token_mask(lengths, x.shape[1])
        return Explanation(mean_pooling(x, mask), x, pooling={"mean": mean_share(mask)})
