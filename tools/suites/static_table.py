"""A static table of all-MiniLM-L6-v2's word vectors: the baseline that an encoder must be worth more than.

As model2vec makes one (Minish Lab 2024): each piece of the vocabulary is encoded alone, 256 principal components are
kept, and a text's vector is the mean of its pieces', of which the frequent ones weigh less.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from heedful.text.arrays import Floats
from heedful.training import teacher_vectors, teachers
from heedful.training.vectors import pca

NAME = "static-table"
SIZE = 256


def static_table(cache: Path) -> Callable[[Sequence[str]], Floats]:
    """A function from texts (N,) to vectors (N, SIZE). `cache` keeps the pieces' vectors. Raises DataMissing."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(teachers.folder(teachers.MINILM))
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    alone = teacher_vectors.stored_vectors(
        teachers.MINILM, [one.removeprefix("##") for one in pieces], cache, "cpu"
    )
    # The vocabulary begins with the frequent pieces: by Zipf's law a rank stands for a frequency.
    weights = np.log1p(np.arange(len(pieces), dtype=np.float32))
    table = pca(alone.astype(np.float32), SIZE) * weights[:, None]

    def embed(texts: Sequence[str]) -> Floats:
        found = np.zeros((len(texts), SIZE), np.float32)
        for row, ids in zip(
            found, tokenizer(list(texts), add_special_tokens=False)["input_ids"], strict=True
        ):
            row[:] = table[ids].mean(axis=0) if ids else 1.0
        return found

    return embed
