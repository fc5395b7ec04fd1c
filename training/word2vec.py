"""word2vec (Mikolov et al. 2013) on a task's own texts, as LAMA begins; gensim's."""

from collections.abc import Sequence

from gensim.models import Word2Vec

from heedful.training.data import Parsed
from heedful.training.vectors import Table

RARE = 5
"""A word that stands in the texts less often has no vector."""
EPOCHS = 10


def train(texts: Sequence[Parsed], *, dim: int, seed: int) -> Table:
    """Skip-gram vectors (V, dim) of the lower-cased tokens. The same texts and seed give the same ones:
    one worker, whatever the threads of the run.
    """
    sentences = [sentence for parsed in texts for sentence in parsed.sentences()]
    model = Word2Vec(
        sentences, vector_size=dim, min_count=RARE, sg=1, epochs=EPOCHS, seed=seed, workers=1
    )
    return Table(model.wv.vectors, model.wv.key_to_index)
