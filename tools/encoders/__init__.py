"""The baselines of the papers, by their names in the repository's configurations.

Importing this module adds them to `models.registry`; `tools.tasks` imports it.
"""

from functools import partial

from heedful.models.disan import DiSAN
from heedful.models.ms_san import MSSAN
from heedful.models.registry import ENCODERS, MS_SAN, Entry, disan, dsa, lama
from tools.encoders.average import Average
from tools.encoders.cnn_self_attention import CNNSelfAttention
from tools.encoders.disan_baselines import BiLSTMS2T, MultiHeadS2T, word_additive, word_s2t
from tools.encoders.lama_baselines import SAN, BiGRUMax, CNNMax, Transformer
from tools.encoders.ms_san_sep import ms_san_sep
from tools.encoders.relative import Shaw, TransformerXL


def _relative(positions: type[Shaw | TransformerXL], *, direction: bool) -> Entry:
    """MS-SAN with relative positions instead of the distance masks (Table 4)."""
    make = partial(MSSAN, positions=positions, direction=direction, word=False, dependency=False)
    return Entry(make, MS_SAN, "quadratic")


ENCODERS.update(
    {
        "ms-san-sep": Entry(ms_san_sep, MS_SAN, "quadratic"),
        "ms-san-shaw": _relative(Shaw, direction=False),
        "ms-san-transformer-xl": _relative(TransformerXL, direction=False),
        "ms-san-direction-shaw": _relative(Shaw, direction=True),
        "ms-san-direction-transformer-xl": _relative(TransformerXL, direction=True),
        "disan-no-direction": disan(partial(DiSAN, direction=False), "quadratic"),
        "word-additive": disan(word_additive, "linear"),
        "word-s2t": disan(word_s2t, "linear"),
        "multi-head-s2t": disan(MultiHeadS2T, "quadratic"),
        "bi-lstm-s2t": disan(BiLSTMS2T, "linear"),
        "cnn-self-attention": dsa(CNNSelfAttention),
        "average": lama(Average),
        "san": lama(SAN, "Lin et al. 2017, A Structured Self-Attentive Sentence Embedding"),
        "bi-gru-max": lama(BiGRUMax),
        "cnn-max": lama(
            CNNMax, "Kim 2014, Convolutional Neural Networks for Sentence Classification"
        ),
        "transformer": lama(
            Transformer, "Vaswani et al. 2017, Attention Is All You Need", "quadratic"
        ),
    }
)
