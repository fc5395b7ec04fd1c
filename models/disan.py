"""DiSAN: Directional Self-Attention Network (Shen, Zhou, Long, Jiang, Pan and Zhang, 2018).

Equation numbers are the paper's. docs/models.md decides where it is silent. i is the token that is
attended to, j the reference.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from heedful.models.masks import token_mask
from heedful.models.pooling import AttentivePooling
from heedful.models.sentence import Encoder, Explanation

C = 5.0
"""The constant c of eq. (15)."""
MASKS = {"forward": operator.lt, "backward": operator.gt, "diag-disabled": operator.ne}
"""Eq. (16)-(18): the relation of the position i to j where j may attend to it."""

MaskName = Literal["forward", "backward", "diag-disabled"]


def glorot(module: nn.Module) -> None:
    """Initialise a linear layer as the paper does: Glorot, zero bias. For `nn.Module.apply`."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def source2token(dim: int, dropout: float) -> AttentivePooling:
    """Multi-dimensional source2token self-attention, eq. (12)-(13)."""
    return AttentivePooling(
        nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(dim, dim),
            nn.ELU(),
            nn.Dropout(dropout),
            nn.Linear(dim, dim),
        )
    )


def scan(
    step: Callable[..., tuple[Tensor, ...]],
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    constants: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """A loop over tokens that is exported as one ONNX Scan node.

    It runs `step(*carry, *x, *constants) -> (*carry, *outputs)` for each x along the first axis of `xs`, and returns
    the outputs, stacked along a new first axis. `step` must read only its arguments, and return no tensor twice and
    none of its arguments: otherwise torch does not export it.
    """
    carried = len(carry)
    if torch.compiler.is_exporting():
        results = torch.ops.higher_order.scan(step, list(carry), list(xs), tuple(constants))
        return tuple(results[carried:])
    # torch's scan compiles its step first: in training a plain loop is simpler and as fast.
    state, outputs = tuple(carry), []
    for x in zip(*(tensor.unbind() for tensor in xs), strict=True):
        results = step(*state, *x, *constants)
        state = results[:carried]
        outputs.append(results[carried:])
    return tuple(torch.stack(output) for output in zip(*outputs, strict=True))


def attend(query: Tensor, allowed: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor]:
    """Eq. (15) and (11) for one reference token j of each sentence.

    query (B, 1, D): (W_2 h_j + b) / c; allowed (B, 1, L): 1 where j may attend, else 0;
    keys (B, L, D): W_1 h_i / c; values (B, L, D): h_i. Returns s_j (B, 1, D), zero where j may attend
    to nothing.
    """
    powers, total = numerators(query, allowed, keys)
    return (torch.bmm(allowed, powers * values) / total,)


def weigh(query: Tensor, allowed: Tensor, keys: Tensor) -> tuple[Tensor]:
    """The weights of eq. (15) for one reference token, the mean over features: (B, 1, L).

    The arguments are those of `attend`. Zero where the token may attend to nothing.
    """
    powers, total = numerators(query, allowed, keys)
    return (allowed * (powers / total).mean(-1)[:, None],)


def numerators(query: Tensor, allowed: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The softmax of eq. (15) as numerators (B, L, D) and their sum over the allowed tokens (B, 1, D)."""
    # A score lies between -c and c, so the maximum need not be subtracted first.
    powers = torch.exp(C * torch.tanh(keys + query))
    # A sum over any token is at least e^-c = 0.0067; an empty sum is zero.
    return powers, torch.bmm(allowed, powers).clamp(min=1e-3)


class DirectionalAttention(nn.Module):
    """One DiSA block, eq. (14)-(20): fully connected layer, token2token attention, fusion gate.

    The attention has a weight for every pair of tokens and every feature. It is computed for one
    reference token after the other, so that a run holds B*L*D floats, not B*L*L*D.
    """

    def __init__(self, dim: int, mask: MaskName, dropout: float) -> None:
        super().__init__()
        self.may_attend = MASKS[mask]
        self.hidden = nn.Linear(dim, dim)  # W_h and b_h
        self.attended = nn.Linear(dim, dim, bias=False)  # W_1
        self.reference = nn.Linear(dim, dim)  # W_2 and b
        self.gate_attention = nn.Linear(dim, dim, bias=False)  # W_f1
        self.gate_hidden = nn.Linear(dim, dim)  # W_f2 and b_f
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, D), mask (B, L) boolean -> (B, L, D)."""
        h = self.context(x)
        return self.fuse(h, self.token2token(h, mask))[0]

    def explain(
        self, x: Tensor, mask: Tensor, direction: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`forward` with the attention (B, L, L) and the gate (B, L), means over features."""
        h = self.context(x)
        references, keys = self.pairs(h, mask, direction)
        (s,) = scan(attend, [], references, [keys, h])
        (rows,) = scan(weigh, [], references, [keys])
        u, f = self.fuse(h, s[:, :, 0].transpose(0, 1))
        return u, rows[:, :, 0].transpose(0, 1), f.mean(-1)

    def context(self, x: Tensor) -> Tensor:
        """Eq. (14): x (B, L, D) -> h (B, L, D)."""
        return nn.functional.elu(self.hidden(self.dropout(x)))

    def fuse(self, h: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (19)-(20): h and s (B, L, D) -> u and the gate F, (B, L, D) each."""
        f = torch.sigmoid(self.gate_attention(self.dropout(s)) + self.gate_hidden(self.dropout(h)))
        return f * h + (1 - f) * s, f

    def token2token(self, h: Tensor, mask: Tensor) -> Tensor:
        """Eq. (15) and (11): h (B, L, D), mask (B, L) boolean -> s (B, L, D)."""
        references, keys = self.pairs(h, mask)
        (s,) = scan(attend, [], references, [keys, h])
        return s[:, :, 0].transpose(0, 1)

    def pairs(
        self, h: Tensor, mask: Tensor, direction: Tensor | None = None
    ) -> tuple[list[Tensor], Tensor]:
        """The arguments of `attend`: queries (L, B, 1, D), where they may look (L, B, 1, L), keys (B, L, D).

        `direction` () boolean: False replaces the block's mask with the diag-disabled one.
        """
        dropped = self.dropout(h)
        keys, queries = self.attended(dropped) / C, self.reference(dropped) / C
        position = torch.arange(h.shape[1], device=h.device)
        allowed = self.may_attend(position[None, :], position[:, None])  # (L, L): [j, i]
        if direction is not None:
            anywhere = MASKS["diag-disabled"](position[None, :], position[:, None])
            allowed = allowed | (anywhere & ~direction)
        pairs = allowed[:, None, None, :] & mask[None, :, None, :]
        return [queries.transpose(0, 1)[:, :, None], pairs.to(h.dtype)], keys


class DiSAN(Encoder):
    """Figure 4: a forward and a backward block with untied weights, then source2token over both.

    Without `direction` both blocks have the diag-disabled mask ("DiSAN without directions").
    `dropout` applies to the input of each linear layer; the paper does not say where, so this is our choice.
    """

    def __init__(self, *, dim: int = 300, direction: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.dim = 2 * dim
        masks: tuple[MaskName, MaskName] = ("diag-disabled", "diag-disabled")
        if direction:
            masks = ("forward", "backward")
            self.priors = ("direction",)
        self.names = ("forward", "backward") if direction else ("first block", "second block")
        self.blocks = nn.ModuleList(DirectionalAttention(dim, name, dropout) for name in masks)
        self.pooling = source2token(self.dim, dropout)
        self.apply(glorot)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, 2 D)."""
        mask = token_mask(lengths, x.shape[1])
        u = torch.cat([block(x, mask) for block in self.blocks], dim=-1)
        sentence: Tensor = self.pooling(u, mask)
        return sentence

    def explain(self, x: Tensor, lengths: Tensor, direction: Tensor | None = None) -> Explanation:
        """Figures 6 to 8: token2token and gate of each block, source2token."""
        mask = token_mask(lengths, x.shape[1])
        parts = [
            block.explain(x, mask, direction)  # type: ignore[operator]  # nn.Module hides it
            for block in self.blocks
        ]
        u = torch.cat([part for part, _, _ in parts], dim=-1)
        sentence, weights = self.pooling.attend(u, mask)
        return Explanation(
            sentence,
            u,
            pooling={"source2token": weights.mean(-1)},
            maps={name: rows for name, (_, rows, _) in zip(self.names, parts, strict=True)},
            gate={name: gate for name, (_, _, gate) in zip(self.names, parts, strict=True)},
        )
