"""Real bundles and a real parser, made in a second or two without torch.

The encoder is an embedding lookup that sees the tree: each token adds `alpha` times its governor's
vector, then tanh, then the mean over the tokens. Of pieces, a token's vector is the mean of its pieces',
each with a vector of its place. The heads are one linear layer. Weights are
random, from a seed: the answers mean nothing, but they are right or wrong to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.training import Example
from thinc.api import fix_random_seed
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from heedful.export.bundle_writer import write
from heedful.export.weight_sharing import externalize_weights, share_weights
from heedful.runtime.bundles.card import (
    ENCODER,
    ENCODER_INT8,
    EXPLAIN,
    EXPLAIN_INT8,
    HEAD,
    TOKENIZER,
    VOCAB,
    Card,
)
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence
from heedful.text.kinds import Kind
from heedful.text.parse import fingerprint
from heedful.text.pieces import Pieces
from heedful.text.vocab import SPECIAL
from tests.graphs import doubled, encoder_graph, explain_graph, head_graph

WORDS = (
    *("a", "the", "two", "three", "kid", "kids", "dog", "man", "at"),
    *("ballgame", "wash", "their", "hands", "hand", "is", "not", "good", "bad"),
)
DIMENSION = 8
LABELS: dict[Kind, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "classification": ("negative", "positive"),
    "relatedness": (),
    "embedding": (),
}
ALPHA = 1.5
TREES = """
Two kids wash their hands > 1 2 2 4 2 > nummod nsubj ROOT nmod:poss obj
The dog is not good . > 1 4 4 4 4 4 > det nsubj cop advmod ROOT punct
"""
"""Sentences, and each word's head and relation."""


@dataclass(frozen=True)
class BuiltParser:
    folder: Path
    name: str
    fingerprint: str


def build_parser(folder: Path) -> BuiltParser:
    """A spaCy pipeline of a tokenizer and a parser, trained for a few steps on two sentences."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.meta["name"] = "tiny"
    tok2vec = {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 16,
        "depth": 1,
        "embed_size": 64,
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": False,
    }
    nlp.add_pipe("parser", config={"min_action_freq": 1, "model": {"tok2vec": tok2vec}})
    examples = []
    for row in TREES.strip().splitlines():
        text, heads, deps = row.split(" > ")
        tree = {"heads": list(map(int, heads.split())), "deps": deps.split()}
        examples.append(Example.from_dict(nlp.make_doc(text), tree))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    folder.parent.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(folder)
    return BuiltParser(folder, "en_tiny", fingerprint(folder))


def build_pieces(limit: int = 40) -> Pieces:
    """A tokenizer of WORDS without "ballgame" and "unheard", of letters and of their continuations."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ",", "ball", "##game", *letters]
    pieces += [f"##{letter}" for letter in letters]
    pieces += [word for word in WORDS if word not in pieces and word != "ballgame"]
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(pieces[:4])
    return Pieces(tokenizer, limit)


def random_texts(count: int) -> list[str]:
    """One to eleven words each, of which "zebra" is not in WORDS."""
    rng = np.random.default_rng(0)
    words = ["kids", "dog", "wash", "bad", "hands", "the", "zebra"]
    return [" ".join(rng.choice(words, size=rng.integers(1, 12))) for _ in range(count)]


def word_table(words: Sequence[str] = WORDS, dimension: int = DIMENSION) -> Floats:
    """(V, D) vectors of the special tokens and of `words`."""
    shape = (len(SPECIAL) + len(words), dimension)
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def piece_tables(pieces: Pieces) -> tuple[Floats, Floats]:
    """Vectors of the pieces (V, D) and of their places (limit, D)."""
    rng = np.random.default_rng(3)
    sizes = (len(pieces), DIMENSION), (pieces.limit, DIMENSION)
    table, places = (rng.normal(size=size).astype(np.float32) for size in sizes)
    return table, places


def expected_embedding(
    sentence: Sentence, alpha: float = ALPHA, pieces: Pieces | None = None
) -> Floats:
    """(D,) what the built encoder must give, token by token."""
    if sentence.pieces is None or pieces is None:
        words = list(word_table()[sentence.ids])
    else:
        table, places = piece_tables(pieces)
        hidden = [table[id] + places[place] for place, id in enumerate(sentence.ids)][1:]
        words = []
        for count in sentence.pieces:
            words.append(np.mean(hidden[:count], axis=0))
            hidden = hidden[count:]
    rows = [
        np.tanh(words[i] + alpha * words[head]) for i, head in enumerate(sentence.heads.tolist())
    ]
    mean: Floats = np.mean(rows, axis=0, dtype=np.float32)
    return mean


def build_bundle(
    models: Path,
    parser: BuiltParser,
    *,
    name: str = "tiny-sst2",
    kind: Kind = "classification",
    labels: tuple[str, ...] | None = None,
    max_tokens: int = 16,
    tree: bool = True,
    pieces: Pieces | None = None,
    explain: bool = False,
    int8: bool = False,
    **card: Any,
) -> Card:
    """Write the bundle `models/name`, of words or of `pieces`; `card` replaces fields of its card.

    Its int8 graphs compute twice the vector, so that one sees which graph has answered.
    """
    labels = LABELS[kind] if labels is None else labels
    files: dict[str, Path | bytes] = {}
    if pieces is None:
        files[VOCAB] = "".join(f"{word}\n" for word in (*SPECIAL, *WORDS)).encode()
        table, places = word_table(), None
    else:
        files[TOKENIZER] = pieces.text.encode()
        table, places = piece_tables(pieces)
    encoder = encoder_graph(table, tree=tree, places=places)
    files[ENCODER] = encoder
    if explain:
        files[EXPLAIN] = share_weights(explain_graph(table, tree=tree, places=places), encoder)
    if int8:
        files[ENCODER_INT8] = externalize_weights(doubled(encoder), encoder, ENCODER)
        if explain:
            twice = doubled(explain_graph(table, tree=tree, places=places))
            files[EXPLAIN_INT8] = share_weights(twice.SerializeToString(), encoder)
        card["int8"] = {
            **{"products": 1, "left": 0, "dataset": "toy", "metric": "accuracy"},
            **{"float32": 0.5, "int8": 0.5, "cosine": 1.0, "sentences": 2, "company": 0.0},
        }
    if kind != "embedding":
        files[HEAD] = head_graph(kind, DIMENSION, len(labels) or 5)
    fields: dict[str, Any] = {
        "task": name.rpartition("-")[2],
        "kind": kind,
        "encoder": {"name": "tiny", "config": {"dim": DIMENSION}, "parameters": 0, "paper": "none"},
        "dimension": DIMENSION,
        "labels": labels,
        "max_tokens": max_tokens,
        "tree": tree,
        "cost": "linear",
        "alpha": ALPHA if tree else None,
        "parser": {"name": parser.name, "fingerprint": parser.fingerprint},
        "parity": {"max_abs_error": 0.0, "tolerance": 1e-4, "cases": 1, "against": "numpy"},
        "scores": (
            {"dataset": "toy", "split": "test", "metric": "accuracy", "value": 0.5, "rows": 2},
        ),
        "training": {
            "data": ({"name": "toy", "rows": 2, "licence": "CC0-1.0", "note": "made up"},),
            "vectors": "random",
            "seed": 1,
            "epochs": 0,
            "config": "none",
            "command": "none",
            "commit": "none",
        },
        "licence": "Apache-2.0",
        **card,
    }
    return write(models / name, fields, files)


def build_models(models: Path) -> BuiltParser:
    """A folder to serve: `parser`, `tiny-nli`, `tiny-sst2`, `tiny-related` and `tiny-flat` (embedding, no tree).

    The first three can be explained.
    """
    parser = build_parser(models / "parser")
    build_bundle(models, parser, name="tiny-nli", kind="nli", explain=True)
    build_bundle(models, parser, name="tiny-sst2", kind="classification", explain=True)
    build_bundle(models, parser, name="tiny-related", kind="relatedness", explain=True)
    build_bundle(models, parser, name="tiny-flat", kind="embedding", tree=False)
    return parser
