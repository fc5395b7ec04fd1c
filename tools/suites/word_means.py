"""The mean of a bundle's word vectors: its table without the encoder, as a baseline."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import spacy
from onnx.utils import Extractor

from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.text.arrays import Floats
from heedful.text.batch import collate
from heedful.text.graph import open_session

BATCH = 64


def word_means(bundle: Bundle) -> Callable[[Sequence[str]], Floats]:
    """A function from texts (N,) to the means (N, D) of the vectors that the encoder first multiplies.

    For a transformer these are the vectors of pieces and positions. Raises ExportError where nothing is multiplied.
    """
    session = open_session(_vectors(onnx.load_from_string(bundle.files[ENCODER])))
    inputs = [value.name for value in session.get_inputs()]
    tokenizer = spacy.blank("en").make_doc

    def means(texts: Sequence[str]) -> Floats:
        docs = [[token.text for token in tokenizer(text) if not token.is_space] for text in texts]
        words = [doc[: min(bundle.vocab.fitting(doc), bundle.card.max_tokens)] for doc in docs]
        sentences = [bundle.vocab.sentence(each, np.arange(len(each))) for each in words]
        feeds = encoder_feeds(bundle.card, collate(sentences))
        (vectors,) = session.run(None, {name: feeds[name] for name in inputs})
        rows = zip(vectors, sentences, strict=True)
        return np.array([row[: len(each.ids)].mean(axis=0) for row, each in rows], np.float32)

    def embed(texts: Sequence[str]) -> Floats:
        starts = range(0, len(texts), BATCH)
        return np.concatenate([means(texts[start : start + BATCH]) for start in starts])

    return embed


def _vectors(model: onnx.ModelProto) -> bytes:
    """The part of an encoder's graph that computes the first factor which depends on the words' ids."""
    derived = {"ids"}
    for node in model.graph.node:
        if node.op_type in ("MatMul", "Gemm") and node.input[0] in derived:
            part = Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(
                [value.name for value in model.graph.input], [node.input[0]]
            )
            content: bytes = part.SerializeToString()
            return content
        if derived & set(node.input):
            derived |= set(node.output)
    raise ExportError("the encoder multiplies no word vectors")
