"""A Universal Dependencies treebank as spaCy documents, read by spaCy's converter."""

import random
from collections.abc import Sequence
from pathlib import Path

from spacy.tokens import Doc
from spacy.training.converters.conllu_to_docs import conllu_to_docs

from heedful.training.data_folder import find, lines

EWT_LICENCE = "CC BY-SA 4.0"
SENTENCES_A_DOCUMENT = (1, 1, 1, 1, 2, 3, 4)
"""Sentences per training document, drawn from these: mostly one, as in requests."""


def sentences(data: Path, split: str) -> list[Doc]:
    """The gold sentences of UD English EWT, one document each. Raises DataMissing."""
    path = find(
        data, (f"ud/EWT/en_ewt-ud-{split}.conllu", f"en_ewt-ud-{split}.conllu"), dataset="ud"
    )
    return list(conllu_to_docs("\n".join(lines(path)), n_sents=1, no_print=True))


def grouped(docs: Sequence[Doc], seed: int) -> list[Doc]:
    """Join neighbouring sentences at random, so that the parser learns where a sentence ends."""
    rng = random.Random(seed)
    joined = []
    start = 0
    while start < len(docs):
        group = docs[start : start + rng.choice(SENTENCES_A_DOCUMENT)]
        joined.append(group[0] if len(group) == 1 else Doc.from_docs(list(group)))
        start += len(group)
    return joined
