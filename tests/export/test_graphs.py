"""The exported files as ONNX Runtime runs them, against torch with the weights as stored."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.text.arrays import Floats
from heedful.text.batch import Batch, Sentence, collate
from tests.export.trained import WORDS
from tests.forests import chain, forest


def run(path: Path, **feeds: npt.NDArray[np.generic]) -> Floats:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (output,) = session.run(None, feeds)
    return np.asarray(output, np.float32)


def encode(bundle: Bundle, batch: Batch, alpha: float = 0.5) -> Floats:
    return run(
        bundle.folder / ENCODER,
        ids=batch.ids,
        lengths=batch.lengths,
        heads=batch.heads,
        alpha=np.array(alpha, np.float32),
    )


def sentence(rng: np.random.Generator, length: int) -> Sentence:
    return Sentence(rng.integers(1, WORDS, length), forest(rng, length))


def test_tree_and_alpha_reach_the_vector(nli: Bundle) -> None:
    rng = np.random.default_rng(2)
    ids = rng.integers(1, WORDS, 12)
    first = collate([Sentence(ids, forest(rng, 12))])
    second = collate([Sentence(ids, chain(12))])
    assert np.abs(encode(nli, first) - encode(nli, second)).max() > 1e-3
    assert np.abs(encode(nli, first, 0.5) - encode(nli, first, 1.0)).max() > 1e-3
    # without weight on distances the tree does not matter
    np.testing.assert_array_equal(encode(nli, first, 0.0), encode(nli, second, 0.0))


def test_a_graph_without_distances_asks_for_neither_tree_nor_alpha(plain: Bundle) -> None:
    rng = np.random.default_rng(3)
    batch = collate([sentence(rng, 4), sentence(rng, 9)])
    vectors = run(plain.folder / ENCODER, ids=batch.ids, lengths=batch.lengths)
    assert vectors.shape == (2, plain.card.dimension)
    assert not plain.card.tree
    assert plain.card.alpha is None


def test_weights_are_stored_small(nli: Bundle) -> None:
    model = onnx.load(nli.folder / ENCODER)
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    matrices = {name: kinds[name] for name, shape in shapes.items() if len(shape) == 2}
    table = next(
        name for name, shape in shapes.items() if shape == (WORDS, nli.card.dimension // 2)
    )
    assert matrices.pop(table) == onnx.TensorProto.INT8
    scales = next(name for name, shape in shapes.items() if shape == (WORDS, 1))
    assert matrices.pop(scales) == onnx.TensorProto.FLOAT
    assert len(matrices) == 12  # four projections, four of the gate, two feed-forward layers
    assert set(matrices.values()) == {onnx.TensorProto.FLOAT16}


def test_a_bundle_says_nothing_of_the_machine_it_was_made_on(nli: Bundle) -> None:
    for file in nli.folder.iterdir():
        content = file.read_bytes()
        assert b".py" not in content
        assert str(Path.cwd()).encode() not in content
