"""Open a trained model's closed vocabulary: unlisted words are composed from their spelling.

The encoder is not trained further: the features are fitted to the vectors of the listed words (training.composed).
"""

import copy
from dataclasses import replace

from torch import nn

from heedful.export.bundle import TrainedModel
from heedful.export.errors import ExportError
from heedful.models.composed_words import ComposedWords
from heedful.models.sentence import SentenceEncoder
from heedful.text.composition import SIGNATURE
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import composed

SEED = 1


def open_vocabulary(trained: TrainedModel, rows: int) -> TrainedModel:
    """The model with a table of `rows` subword features. Raises ExportError where its vocabulary is not closed."""
    table, vocab = trained.model.embedding, trained.vocab
    if not isinstance(table, nn.Embedding) or not isinstance(vocab, Vocab):
        raise ExportError(
            "--composed: the run composes unlisted words already, or reads word pieces: leave it out"
        )
    words = ComposedWords(copy.deepcopy(table), rows=rows, signature=SIGNATURE)
    lexicon = Vocab(vocab.words[len(SPECIAL) :], rows)
    composed.fit_features(words, lexicon, seed=SEED)
    model = SentenceEncoder(words, trained.model.encoder, trained.model.projection)
    return replace(trained, model=model, vocab=lexicon)
