"""`heedful selftest`, for real: golden vectors are written, compared, and a changed bundle is caught."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from heedful.cli import selftest
from heedful.cli.errors import CommandError
from heedful.export.bundle_writer import rewrite
from heedful.export.golden import golden as make_golden
from heedful.runtime.bundles.bundle import read, read_card
from heedful.runtime.bundles.card import ENCODER, GOLDEN
from heedful.runtime.bundles.golden import Golden
from heedful.runtime.errors import BundleError
from heedful.text.parse import Parser
from tests.asking import present
from tests.builders import BuiltParser, build_bundle
from tests.runtime.test_bundle import replace_file
from tools.local_model import open_folder

NAME = "tiny-sst2"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Path:
    """A bundle with golden vectors of both kinds of graphs, as `heedful export` writes them."""
    folder = tmp_path_factory.mktemp("golden") / NAME
    build_bundle(folder.parent, pipeline, name=NAME, explain=True, int8=True)
    bundle = read(folder)
    made = make_golden(bundle, Parser.load(pipeline.folder).parse).to_bytes()
    rewrite(folder, bundle.card.fields(), {**bundle.files, GOLDEN: made})
    return folder


@pytest.fixture
def bundle(golden: Path, tmp_path: Path) -> Path:
    return shutil.copytree(golden, tmp_path / NAME)


def change_weight(folder: Path, value: float) -> None:
    """Change a value of the unknown word, which most golden sentences hold."""
    model = onnx.load(folder / ENCODER)
    (table,) = (one for one in model.graph.initializer if one.name == "table")
    vectors = numpy_helper.to_array(table).copy()
    vectors[1, 3] = value
    table.raw_data = vectors.tobytes()
    replace_file(folder, ENCODER, model.SerializeToString())


def repaired(folder: Path) -> None:
    """Let the golden vectors vouch for the files as they are: only comparing the vectors is left."""
    with np.load(folder / GOLDEN) as arrays:
        stored = json.loads(str(arrays["about"]))["files"]
    files = {name: sha for name, sha in read_card(folder).files.items() if name != GOLDEN}
    kept = Golden.read((folder / GOLDEN).read_bytes(), stored)
    replace_file(folder, GOLDEN, replace(kept, files=files).to_bytes())


def test_a_bundle_carries_32_sentences_of_each_kind_of_graph(golden: Path) -> None:
    found = present(read(golden).golden)
    assert len(found.texts) == len(set(found.texts)) == 32
    assert set(found.outputs) == {"float32", "int8"}
    assert set(found.files) == set(read(golden).card.files) - {GOLDEN}
    again = Golden.read(found.to_bytes(), found.files)
    for precision, outputs in found.outputs.items():
        assert outputs.vectors.shape == (32, 8)
        np.testing.assert_allclose(np.linalg.norm(outputs.vectors, axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(outputs.answers.sum(1), 1, atol=1e-6)
        np.testing.assert_array_equal(again.outputs[precision].vectors, outputs.vectors)
        for field, kind in (("vectors", "vector"), ("answers", "answer")):
            nothing = replace(outputs, **{field: np.full_like(getattr(outputs, field), np.nan)})
            said = found.moved_outputs(nothing, precision)
            assert len(said) == 32
            assert all(one.startswith(f"the {kind} of ") for one in said)


def test_nothing_moves_where_they_were_written(
    golden: Path,
    pipeline: BuiltParser,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder named twice is tested once, and two of one name are refused."""
    parser = str(pipeline.folder)
    deviations, moved = selftest.run([golden, golden], parser)
    assert moved == {}
    assert list(deviations) == [NAME]
    assert present(deviations[NAME]) < 1e-6
    monkeypatch.setenv("HEEDFUL_MODELS", str(golden.parent))
    for name in (NAME, str(golden)):
        selftest.command([name], parser=parser)
        assert capsys.readouterr().out.startswith(f"{NAME}: at most ")
    copied = shutil.copytree(golden, tmp_path / "copied" / NAME)
    with pytest.raises(CommandError, match="have the same name: test one at a time"):
        selftest.run([golden, copied], parser)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (9.0, r"the vector of .* moved by [\d.e+-]+ \(at most 0\.002\)"),
        (np.nan, "the model gave NaN or infinity"),
    ],
)
def test_a_changed_weight_is_caught_by_the_vectors_alone(
    bundle: Path, pipeline: BuiltParser, value: float, reason: str
) -> None:
    """The golden file vouches for the new weights as well: start and measurement are refused with the figure."""
    change_weight(bundle, value)
    with pytest.raises(BundleError, match=r"golden\.npz: was made from another encoder\.onnx"):
        read(bundle)
    repaired(bundle)
    said = rf"golden\.npz: on this machine {reason}"
    with pytest.raises(BundleError, match=said):
        selftest.run([bundle], str(pipeline.folder))
    with pytest.raises(BundleError, match=said), open_folder(bundle, str(pipeline.folder)):
        pass
