"""`heedful selftest`, for real: golden vectors are written, compared, and a changed bundle is caught."""

import asyncio
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
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, GOLDEN, HEAD
from heedful.runtime.bundles.golden import Golden
from heedful.runtime.errors import BundleError
from heedful.runtime.service import Options, running
from heedful.text.parse import Parser
from tests.asking import present
from tests.builders import BuiltParser, build_bundle
from tests.runtime.test_bundle import replace_file
from tools.local_model import open_folder

NAME = "tiny-sst2"


def add_golden(folder: Path, parser: BuiltParser) -> None:
    """Give a bundle what `heedful export` writes."""
    bundle = read(folder)
    made = make_golden(bundle, Parser.load(parser.folder).parse).to_bytes()
    rewrite(folder, bundle.card.fields(), {**bundle.files, GOLDEN: made})


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Path:
    """A bundle with golden vectors of both kinds of graphs."""
    models = tmp_path_factory.mktemp("golden")
    build_bundle(models, pipeline, name=NAME, explain=True, int8=True)
    add_golden(models / NAME, pipeline)
    return models / NAME


@pytest.fixture
def bundle(golden: Path, tmp_path: Path) -> Path:
    return shutil.copytree(golden, tmp_path / NAME)


def changed_byte(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x01]) + content[place + 1 :]


def place_of(content: bytes, tensor: str) -> int:
    """The highest byte of a value of the unknown word, which most golden sentences hold."""
    model = onnx.load_from_string(content)
    (found,) = [one for one in model.graph.initializer if one.name == tensor]
    return content.index(numpy_helper.to_array(found).tobytes()) + 4 * (8 + 4) - 1


def broken_weight(folder: Path) -> None:
    """Change a byte of a weight, and let the golden vectors vouch for the files as they are."""
    content = (folder / ENCODER).read_bytes()
    replace_file(folder, ENCODER, changed_byte(content, place_of(content, "table")))
    repaired(folder)


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
    for outputs in found.outputs.values():
        assert outputs.vectors.shape == (32, 8)
        np.testing.assert_allclose(np.linalg.norm(outputs.vectors, axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(outputs.answers.sum(1), 1, atol=1e-6)
    assert set(found.files) == set(read(golden).card.files) - {GOLDEN}
    again = Golden.read(found.to_bytes(), found.files)
    np.testing.assert_array_equal(again.outputs["int8"].vectors, found.outputs["int8"].vectors)
    assert found.moved_outputs(outputs, "int8") == []
    for field, kind in (("vectors", "vector"), ("answers", "answer")):
        nothing = replace(outputs, **{field: np.full_like(getattr(outputs, field), np.nan)})
        said = found.moved_outputs(nothing, "int8")
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
    found = selftest.run([golden, golden], parser)
    assert found.moved == {}
    assert list(found.deviations) == [NAME]
    assert present(found.deviations[NAME]) < 1e-6
    monkeypatch.setenv("HEEDFUL_MODELS", str(golden.parent))
    for name in (NAME, str(golden)):
        selftest.command([name], parser=parser)
        assert capsys.readouterr().out.startswith(f"{NAME}: at most ")
    copied = shutil.copytree(golden, tmp_path / "copied" / NAME)
    with pytest.raises(CommandError, match="have the same name: test one at a time"):
        selftest.run([golden, copied], parser)


def test_any_byte_of_any_file_is_caught_though_its_hash_is_repaired(bundle: Path) -> None:
    for name in (ENCODER, ENCODER_INT8, "head.onnx", "vocab.txt"):
        content = (bundle / name).read_bytes()
        replace_file(bundle, name, changed_byte(content, len(content) // 2))
        with pytest.raises(BundleError):
            read(bundle)
        replace_file(bundle, name, content)
    place = place_of((bundle / ENCODER).read_bytes(), "table")
    replace_file(bundle, ENCODER, changed_byte((bundle / ENCODER).read_bytes(), place))
    with pytest.raises(BundleError, match=r"golden\.npz: was made from another encoder\.onnx"):
        read(bundle)


def test_a_byte_of_a_weight_is_caught_by_the_vectors_alone(
    bundle: Path, pipeline: BuiltParser
) -> None:
    """The golden file vouches for the new weights as well: start and measurement are refused with the figure."""
    broken_weight(bundle)
    said = r"golden\.npz: on this machine the vector of .* moved by [\d.e+-]+ \(at most 0\.002\)"
    with pytest.raises(BundleError, match=said):
        selftest.run([bundle], str(pipeline.folder))
    with pytest.raises(BundleError, match=said), open_folder(bundle, str(pipeline.folder)):
        pass


def test_a_reload_refuses_what_moved_and_the_next_self_test_is_of_what_it_loaded(
    bundle: Path, pipeline: BuiltParser
) -> None:
    async def reload() -> None:
        options = Options(bundle.parent, str(pipeline.folder), "cpu", threads=1)
        async with running(options) as service:
            first, version = await service.self_test(), service.registry.cards[NAME].version
            assert await service.self_test() is first  # it is kept for a while: anybody may ask
            broken_weight(bundle)
            [refused] = (await service.reload()).refused
            assert "golden.npz: on this machine the vector of" in refused
            assert service.registry.cards[NAME].version == version
            shutil.rmtree(bundle)
            build_bundle(bundle.parent, pipeline, name=NAME)  # without golden vectors
            assert (await service.reload()).loaded == (NAME,)
            assert (await service.self_test()).deviations == {NAME: None}

    asyncio.run(reload())


def test_logits_of_several_labels_that_move_alike_are_caught(
    tmp_path: Path, pipeline: BuiltParser
) -> None:
    """Their softmax stays, but the service answers with sigmoids."""
    several = tmp_path / NAME
    build_bundle(tmp_path, pipeline, name=NAME, multi_label=True)
    add_golden(several, pipeline)
    assert selftest.run([several], str(pipeline.folder)).moved == {}
    head = onnx.load(several / HEAD)
    (weights,) = head.graph.initializer
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) + 1, weights.name))
    replace_file(several, HEAD, head.SerializeToString())
    repaired(several)
    with pytest.raises(BundleError, match=r"golden\.npz: .* the answer of .* moved by"):
        selftest.run([several], str(pipeline.folder))
