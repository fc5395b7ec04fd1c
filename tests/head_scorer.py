"""A head scorer in miniature, made without torch: random vectors, right or wrong to the last digit."""

import json
from pathlib import Path

import numpy as np
import onnx
import spacy
from onnx import numpy_helper
from spacy.strings import get_string_id

from heedful.text.head_scorer import CONFIG, RELATIONS, SCORES, WORDS
from heedful.text.word_features import FEATURES, SPECIAL

KNOWN = ("Two", "kids", "wash", "their", "hands", "The", "dog", "is", "not", "good", ".")
LABELS = ("det", "nsubj", "obj")
WIDTH = len(LABELS)
_HEADER = '<ir_version: 9, opset_import: ["" : 17]>'
_SCORES = f"""{_HEADER}
scores (int64[B, L, {FEATURES}] features)
    => (float[B, L, M] scores, float[B, L, {WIDTH}] dependents, float[B, L, {WIDTH}] governors) {{
  zero = Constant <value_int = 0> ()
  last = Constant <value_ints = [-1]> ()
  middle = Constant <value_ints = [1]> ()
  far = Constant <value_float = -10000.0> ()
  words = Gather <axis = 2> (features, zero)
  dependents = Gather (table, words)
  governors = MatMul (dependents, turn)
  upright = Transpose <perm = [0, 2, 1]> (governors)
  products = MatMul (dependents, upright)
  is_padding = Equal (words, zero)
  padding = Cast <to = 1> (is_padding)
  away = Mul (padding, far)
  aside = Unsqueeze (away, middle)
  arcs = Add (products, aside)
  root = ReduceSum <keepdims = 1> (dependents, last)
  scores = Concat <axis = -1> (root, arcs)
}}"""
_RELATIONS = f"""{_HEADER}
relations (float[B, L, {WIDTH}] dependents, float[B, L, {WIDTH}] governors, int64[B, L] heads)
    => (int64[B, L] relations) {{
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  last = Constant <value_ints = [-1]> ()
  before = Sub (heads, one)
  places = Max (before, zero)
  index = Unsqueeze (places, last)
  chosen = GatherND <batch_dims = 1> (governors, index)
  summed = Add (dependents, chosen)
  relations = ArgMax <axis = -1, keepdims = 0> (summed)
}}"""


def build_head_scorer(folder: Path) -> Path:
    """A pipeline on disk; its trees are trees, no more."""
    part = folder.with_name(f"{folder.name}-part")
    part.mkdir(parents=True)
    rng = np.random.default_rng(1)
    table = rng.normal(size=(SPECIAL + len(KNOWN), WIDTH)).astype(np.float32)
    turn = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    scores = onnx.parser.parse_model(_SCORES)
    for name, values in (("table", table), ("turn", turn)):
        scores.graph.initializer.append(numpy_helper.from_array(values, name))
    (part / SCORES).write_bytes(scores.SerializeToString())
    (part / RELATIONS).write_bytes(onnx.parser.parse_model(_RELATIONS).SerializeToString())
    hashes = np.array([get_string_id(word) for word in KNOWN], "<u8")
    (part / WORDS).write_bytes(hashes.tobytes())
    config = {"labels": LABELS, "tables": [[50, 1], [10, 2], [20, 3], [10, 4]]}
    (part / CONFIG).write_text(json.dumps(config))
    nlp = spacy.blank("en")
    nlp.meta["name"] = "tiny_heads"
    nlp.add_pipe("head_scorer", name="parser").from_disk(part)  # type: ignore[attr-defined]
    nlp.to_disk(folder)
    return folder
