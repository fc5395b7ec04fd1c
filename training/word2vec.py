"""word2vec (Mikolov et al. 2013) on a task's own texts, as in LAMA, by gensim."""

from collections import Counter
from collections.abc import Sequence

from heedful.training.errors import ConfigError
from heedful.training.parses import Parsed
from heedful.training.vectors import Table

MIN_COUNT = 5
"""A word that occurs less often has no vector."""
EPOCHS = 10


def train(texts: Sequence[Parsed], *, dim: int, seed: int) -> Table:
    """Skip-gram vectors (V, dim) of the lower-cased tokens, the same for the same texts and seed: one worker trains.

    Raises ConfigError where every word is too rare, or without gensim.
    """
    try:
        from gensim.models import Word2Vec
    except ModuleNotFoundError as error:
        raise ConfigError(
            "words.vectors: word2vec needs gensim, which has no wheel for Python 3.14: use Python 3.13, or build "
            "it with `pip install gensim`"
        ) from error
    sentences = [sentence for parsed in texts for sentence in parsed.sentences()]
    counts = Counter(word for sentence in sentences for word in sentence)
    if max(counts.values(), default=0) < MIN_COUNT:
        raise ConfigError(
            f"words.vectors: word2vec needs words that occur {MIN_COUNT} times, and the texts have none: "
            "name trained vectors"
        )
    model = Word2Vec(
        sentences, vector_size=dim, min_count=MIN_COUNT, sg=1, epochs=EPOCHS, seed=seed, workers=1
    )
    return Table(model.wv.vectors, model.wv.key_to_index)
