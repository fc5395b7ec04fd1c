"""A bundle whose encoder is the mean of another bundle's word vectors: a static table, as model2vec makes one."""

from pathlib import Path

import torch

import tools.encoders  # noqa: F401  # adds ENCODER
from heedful.export.bundle import TrainedModel, export_bundle
from heedful.models.registry import build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import VOCAB
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training.vectors import Table

ENCODER = "average"


def write(source: Path, out: Path) -> None:
    """Write the bundle `out` of kind embedding, whose vectors (D,) are as long as a word's.

    Its words are those that `source`, a bundle without pieces, lists; all others have the padding's vector, zero.
    Raises DataError where `source` holds no table of word vectors, ExportError, BundleError.
    """
    card, vocab = read_card(source), Vocab.read((source / VOCAB).read_bytes())
    vectors = torch.from_numpy(Table.bundle(source).look_up(vocab.words))
    vectors[: len(SPECIAL)] = 0
    config = {"dim": vectors.shape[1]}
    export_bundle(
        TrainedModel(
            encoder=ENCODER,
            config=config,
            model=SentenceEncoder(word_table(vectors, frozen=True), build(ENCODER, config)),
            head=None,
            vocab=Vocab(vocab.words[len(SPECIAL) :]),
            task=out.name,
            kind="embedding",
            labels=(),
            max_tokens=card.max_tokens,
            alpha=0.0,
            parser=card.parser,
            scores=(),
            training=card.training,
            licence=card.licence,
        ),
        out,
    )
