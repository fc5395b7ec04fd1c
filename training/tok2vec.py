"""What a spaCy pipeline's `Tok2Vec` has learned -> the words and windows of a head scorer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.language import Language

from heedful.models.head_scorer import PIECES, HeadScorer, Maxout
from heedful.text.errors import ParserError
from heedful.text.word_features import ATTRIBUTES, SPECIAL, WordFeatures


def features(nlp: Language, name: str | Path) -> WordFeatures:
    """How the pipeline hashes words. Raises ParserError where it is not of the shape of training/parser.cfg."""
    hashed = list(_nodes(nlp, "hashembed", name))
    keys = np.fromiter(nlp.vocab.vectors.keys(), np.uint64)
    if not len(keys) or len(hashed) != len(ATTRIBUTES):
        raise _other(name)
    return WordFeatures(keys, [(one.get_dim("nV"), one.attrs["seed"]) for one in hashed])


def head_scorer(nlp: Language, words: WordFeatures, relations: int, name: str | Path) -> HeadScorer:
    """A head scorer with the pipeline's words and windows; what stands on them is random. Raises ParserError."""
    hashed, maxouts, norms = (
        list(_nodes(nlp, kind, name)) for kind in ("hashembed", "maxout", "layernorm")
    )
    (static,) = _nodes(nlp, "static_vectors", name)
    table = nlp.vocab.vectors
    size = (SPECIAL + len(words.hashes), table.shape[1])
    model = HeadScorer(
        vectors=size,
        tables=[count for count, _ in words.tables],
        relations=relations,
        width=static.get_dim("nO"),
        windows=len(maxouts) - 1,
    )
    with torch.no_grad():
        model.words.vectors.weight.zero_()
        _copy(model.words.vectors.weight[SPECIAL:], table.data[table.find(keys=words.hashes)])
        _copy(model.words.project.weight, static.get_param("W"))
        for embedding, one in zip(model.words.tables.parameters(), hashed, strict=True):
            _copy(embedding, one.get_param("E"))
        mixes = [model.words.mix, *(window.get_submodule("mix") for window in model.windows)]
        for mix, maxout, norm in zip(mixes, maxouts, norms, strict=True):
            assert isinstance(mix, Maxout)
            _copy(mix.maps.weight, maxout.get_param("W").reshape(-1, maxout.get_dim("nI")))
            _copy(mix.maps.bias, maxout.get_param("b").reshape(-1))
            _copy(mix.norm.weight, norm.get_param("G"))
            _copy(mix.norm.bias, norm.get_param("b"))
    return model


def _nodes(nlp: Language, kind: str, name: str | Path) -> Iterator[Any]:
    """Layers of a kind, in order."""
    if "tok2vec" not in nlp.pipe_names:
        raise _other(name)
    walked = nlp.get_pipe("tok2vec").model.walk(order="dfs_pre")  # type: ignore[attr-defined]
    found = [node for node in walked if node.name == kind]
    if not found or (kind == "maxout" and found[0].get_dim("nP") != PIECES):
        raise _other(name)
    yield from found


def _copy(parameter: torch.Tensor, values: Any) -> None:
    parameter.copy_(torch.from_numpy(np.array(values, np.float32)))


def _other(name: str | Path) -> ParserError:
    return ParserError(
        f"the spaCy pipeline {str(name)!r} is no parser of the shape of training/parser.cfg: "
        "name one that `heedful train parser` has made"
    )
