"""One text of `Rows` as a sentence: the reference of the batches that pad many at once."""

import numpy as np

from heedful.text.batch import Sentence
from heedful.training.data import Rows


def sentence(rows: Rows, i: int) -> Sentence:
    """Text i."""
    span = slice(rows.bounds[i], rows.bounds[i + 1])
    heads = rows.heads[span].astype(np.int64)
    if rows.spelling:
        ids, features = rows.spelling.compose(rows.ids[span], None)
        return Sentence(ids, heads, features=features)
    if rows.framing is None:
        return Sentence(rows.ids[span], heads)
    stops, pieces = rows.framing.stops, rows.framing.pieces
    ids = np.concatenate([[pieces.cls], rows.ids[stops[i] : stops[i + 1]], [pieces.sep]])
    return Sentence(ids, heads, rows.framing.counts[span])
