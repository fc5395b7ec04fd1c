"""A static table of all-MiniLM-L6-v2's word vectors: the baseline that an encoder must beat.

Made as by model2vec (Minish Lab 2024): each piece of the vocabulary is encoded by itself, the vectors are reduced to
256 principal components, and a text's vector is the weighted mean of its pieces'; frequent pieces weigh less.
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
    vectors = teacher_vectors.stored_vectors(
        teachers.MINILM, [piece.removeprefix("##") for piece in pieces], cache, "cpu"
    )
    # The vocabulary is sorted by frequency, and by Zipf's law the rank gives the frequency.
    weights = np.log1p(np.arange(len(pieces), dtype=np.float32))
    table = pca(vectors.astype(np.float32), SIZE) * weights[:, None]

    def embed(texts: Sequence[str]) -> Floats:
        means = np.zeros((len(texts), SIZE), np.float32)
        for row, ids in zip(
            means, tokenizer(list(texts), add_special_tokens=False)["input_ids"], strict=True
        ):
            row[:] = table[ids].mean(axis=0) if ids else 1.0
        return means

    return embed
