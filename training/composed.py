"""Initial features of composed words: fitted so that a listed word's spelling gives its vector."""

import random
import string

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.composed_words import ComposedWords
from heedful.text import composition
from heedful.text.pieces import Lexicon
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training.config import Device

EPOCHS, BATCH = 20, 512
RATE = 1e-2
MISSPELT = 0.5
"""Share of the words of an epoch that are misspelt by one edit."""
TEMPERATURE, RANKING = 0.07, 0.3
"""The temperature of the ranking loss, and its weight relative to the cosine and the squared error."""
SHORTEST_MISSPELT = 4


def fit_features(words: nn.Module, lexicon: Lexicon, *, seed: int, device: Device = "cpu") -> None:
    """Fit the features to the vectors of the listed words, in place, on `device`. Does nothing for a closed table.

    Half of the words are misspelt in each epoch. A ranking loss over a batch brings a composed word nearer to its
    word than to others: with it 94 of 100 misspellings came among the nearest twentieth of the list, without it 89
    (docs/notes/words.md).
    """
    if not (isinstance(words, ComposedWords) and isinstance(lexicon, Vocab)):
        return
    generator = torch.Generator().manual_seed(seed)
    rng = random.Random(seed)
    words.reset(generator)
    words.to(device)
    listed = lexicon.words[len(SPECIAL) :]
    targets = words.table.weight.detach()[len(SPECIAL) :]
    length = targets.norm(dim=1).mean().clamp(min=1e-6)
    spelt = torch.from_numpy(composition.matrix(listed, lexicon.composed))
    optimiser = torch.optim.SparseAdam([words.features.weight], lr=RATE)
    for _ in range(EPOCHS):
        rows = spelt.clone()
        misspelt = [i for i in range(len(listed)) if rng.random() < MISSPELT]
        edits = [misspell(listed[i], rng) for i in misspelt]
        rows[misspelt] = torch.from_numpy(composition.matrix(edits, lexicon.composed))
        for batch in torch.randperm(len(rows), generator=generator).split(BATCH):
            loss = _loss(words.compose(rows[batch].to(device)), targets[batch.to(device)], length)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def misspell(word: str, rng: random.Random) -> str:
    """The word with one edit inside it: a letter left out, doubled, exchanged with the next or replaced."""
    if len(word) < SHORTEST_MISSPELT:
        return word
    i = rng.randrange(1, len(word) - 1)
    before, letter, after = word[:i], word[i], word[i + 1 :]
    return rng.choice(
        (
            before + after,
            before + letter + letter + after,
            before + after[0] + letter + after[1:],
            before + rng.choice(string.ascii_lowercase) + after,
        )
    )


def _loss(composed: Tensor, targets: Tensor, length: Tensor) -> Tensor:
    """Composed vectors (B, D) and the words' vectors `targets` (B, D), whose mean length is `length` -> ()."""
    cosines = functional.normalize(composed, dim=1) @ functional.normalize(targets, dim=1).T
    ranking = functional.cross_entropy(
        cosines / TEMPERATURE, torch.arange(len(targets), device=targets.device)
    )
    error = ((composed - targets) / length).square().sum(1).mean()
    return RANKING * ranking + (1 - cosines.diagonal().mean()) + error
