"""A bundle is read whole or refused by its file and a reason; written whole or not at all."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from heedful.export.weight_sharing import share_weights
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import (
    CARD,
    ENCODER,
    ENCODER_INT8,
    EXPLAIN,
    EXPLAIN_INT8,
    GOLDEN,
    HEAD,
    VOCAB,
    Card,
    CardContent,
)
from heedful.runtime.bundles.golden import Golden, Outputs
from heedful.runtime.errors import BundleError
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.vocab import SPECIAL, Vocab
from tests.builders import DIMENSION, LABELS, WORDS, BuiltParser, build_bundle, word_table
from tests.graphs import encoder_graph, explain_graph, head_graph
from tests.writing import put

NAME = "tiny-sst2"
FILES = [CARD, ENCODER, HEAD, VOCAB]


@pytest.fixture
def folder(tmp_path: Path, pipeline: BuiltParser) -> Path:
    build_bundle(tmp_path, pipeline, name=NAME)
    return tmp_path / NAME


def refusal(folder: Path) -> BundleError:
    with pytest.raises(BundleError) as caught:
        bundle.read(folder)
    error = caught.value
    assert error.bundle == folder.name
    assert str(error).startswith(f"bundle {folder.name}: {error.file}: ")
    assert str(folder.parent) not in str(error)
    assert "\n" not in str(error)
    return error


def change_card(folder: Path, **fields: Any) -> None:
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**card, **fields}))


def vouch(folder: Path, **fields: Any) -> None:
    """Change the card and its version with it: only the checks after the version's are left."""
    change_card(folder, **fields)
    content = json.loads((folder / CARD).read_text())
    del content["version"]
    with contextlib.suppress(ValidationError):  # no version is right for what is no card
        change_card(folder, version=CardContent.model_validate(content).identity())


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Replace a file and its hash in the card: only the checks after that of the hashes can refuse it."""
    (folder / name).write_bytes(content)
    hashes = json.loads((folder / CARD).read_text())["files"]
    hashes[name] = hashlib.sha256(content).hexdigest()
    vouch(folder, files=hashes)


def test_what_is_written_is_read_again(folder: Path) -> None:
    """A file that the card does not know is left alone; an earlier card lacks the fields that are new."""
    (folder / "README.md").write_text("notes")
    read = bundle.read(folder)
    assert (read.card.name, read.card.labels) == (NAME, LABELS["classification"])
    assert isinstance(read.vocab, Vocab)
    assert read.vocab.words == (*SPECIAL, *WORDS)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", *FILES]
    for name, digest in read.card.files.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    fields = json.loads((folder / CARD).read_text())
    del fields["int8"], fields["training"]["teacher"]
    (folder / CARD).write_text(json.dumps(fields))
    assert bundle.read(folder).card == read.card


def test_only_bundles_and_empty_folders_are_replaced(tmp_path: Path, pipeline: BuiltParser) -> None:
    work = [put(tmp_path, name, "years of work") for name in ("file", "notes/sub/thesis.docx")]
    (tmp_path / "empty").mkdir()
    for name in ("notes", "file"):
        with pytest.raises(BundleError, match=f"bundle {name}: card.json: .*not empty: name a new"):
            build_bundle(tmp_path, pipeline, name=name)
    assert {file.read_text() for file in work} == {"years of work"}
    build_bundle(tmp_path, pipeline, name="empty")
    (tmp_path / "empty" / "stray").write_text("of the old one")
    build_bundle(tmp_path, pipeline, name="empty", kind="embedding")
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == [CARD, ENCODER, VOCAB]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "notes"]
    assert bundle.read(tmp_path / "empty").card.kind == "embedding"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> dict[str, bytes]:
    models = tmp_path_factory.mktemp("written")
    build_bundle(models, pipeline, name=NAME)
    return {file.name: file.read_bytes() for file in (models / NAME).iterdir()}


@settings(max_examples=200)
@given(st.sampled_from(FILES), st.integers(0), st.integers(0, 255))
@example(CARD, 0, 0)
@example(ENCODER, 0, 0)
def test_a_missing_file_and_any_changed_byte_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    written: dict[str, bytes],
    file: str,
    place: int,
    flipped: int,
) -> None:
    """But for a change of the card's form, such as a blank for a line's end: it says the same."""
    folder = tmp_path_factory.getbasetemp() / "flipped" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    changed = bytearray(written[file])
    changed[place % len(changed)] ^= flipped
    for name, content in {**written, file: bytes(changed)}.items():
        (folder / name).write_bytes(content)
    if not flipped:
        (folder / file).unlink()
        error = refusal(folder)
        assert (error.file, "No such file" in error.reason) == (file, True)
    elif file != CARD or _json(bytes(changed)) != _json(written[CARD]):
        assert refusal(folder).file in (file, CARD)
    else:
        assert bundle.read(folder).card == Card.model_validate_json(written[CARD])


def _json(content: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(content)


TYPICAL_CARD = {"dataset": "toy", "sentences": 10, "centroids": 1, "threshold": 0.3}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"format": 4}, "format 4 is later than 3, the latest known: upgrade heedful"),
        ({"format": 2}, "format: "),
        ({"name": "other"}, "names the model 'other': the folder must have that name"),
        ({"name": "Tiny SST2"}, "name: "),
        ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
        ({"labels": ["positive"]}, "labels of a classification model are two or more"),
        ({"labels": ["good", "good"]}, "labels of a classification model are two or more"),
        ({"labels": ["a", "b", "c"]}, "gives (1, 2), the card says (1, 3)"),
        ({"dimension": 9}, "gives (1, 8), the card says (1, 9)"),
        ({"tree": False}, "has the inputs alpha"),
        ({"kind": "nli"}, "labels of an nli model are"),
        ({"kind": "embedding"}, "has no labels"),
        ({"typical": TYPICAL_CARD}, "typical and typical.npz belong together"),
        ({"kind": "embedding", "labels": []}, "files must name encoder.onnx, vocab.txt"),
        ({"kind": "relatedness", "labels": []}, "has the inputs sentence"),
        ({"version": "0" * 12}, "version is not that of the card and its files"),
        ({"parser": {"name": "en_tiny", "fingerprint": "short"}}, "parser.fingerprint: "),
        ({"max_tokens": 0}, "max_tokens: "),
    ],
)
def test_a_card_that_does_not_hold_is_refused(
    folder: Path, fields: dict[str, Any], reason: str
) -> None:
    (change_card if "version" in fields else vouch)(folder, **fields)
    assert reason in refusal(folder).reason


def test_files_and_card_belong_together(folder: Path, pipeline: BuiltParser) -> None:
    card = build_bundle(folder.parent, pipeline, name=NAME, explain=True, int8=True)
    files = {name: digest for name, digest in card.files.items() if name != EXPLAIN}
    vouch(folder, files=files)
    assert "explain.int8.onnx must come with explain.onnx" in refusal(folder).reason
    vouch(folder, files=card.files, int8=None)
    assert "int8 and encoder.int8.onnx belong together" in refusal(folder).reason


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"card"', b"\xff\xfe", b"[" * 100_000])
def test_a_card_that_is_no_object_is_refused(folder: Path, content: bytes) -> None:
    (folder / CARD).write_bytes(content)
    assert refusal(folder).file == CARD


def unknown_operator() -> bytes:
    """An encoder graph with an operator that ONNX Runtime does not know."""
    model = onnx.load_from_string(encoder_graph(word_table(), tree=True))
    model.graph.node[0].op_type = "NoSuchOperator"
    content: bytes = model.SerializeToString()
    return content


def nan_table() -> bytes:
    table = word_table()
    table[-1] = np.nan
    return encoder_graph(table, tree=True)


def golden_of_int8() -> bytes:
    outputs = {"int8": Outputs(np.zeros((0, DIMENSION), np.float32), np.zeros((0, 2), np.float32))}
    return Golden([], [], [], outputs, {}).to_bytes()  # type: ignore[arg-type]  # a literal


def explained(**metadata: str) -> bytes:
    """explain.onnx with other metadata."""
    graphs = (make(word_table(), tree=True) for make in (explain_graph, encoder_graph))
    model = onnx.load_from_string(share_weights(*graphs))
    known = {entry.key: entry.value for entry in model.metadata_props}
    onnx.helper.set_model_props(model, {**known, **metadata})
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        (ENCODER, lambda: b"not a graph", "ONNX Runtime cannot load it: [ONNXRuntimeError] : "),
        (ENCODER, unknown_operator, "NoSuchOperator"),
        (ENCODER, lambda: encoder_graph(word_table()[:-1], tree=True), "does not run on ids"),
        (ENCODER, nan_table, "gives NaN or infinity"),
        (ENCODER, lambda: head_graph("classification", DIMENSION, 2), "has the inputs sentence"),
        (HEAD, lambda: head_graph("nli", DIMENSION, 2), "has the inputs first"),
        (HEAD, lambda: head_graph("classification", DIMENSION + 1, 2), "does not run on sentence"),
        (VOCAB, lambda: b"words\nwithout\nspecials\n", "is not a vocabulary"),
        (VOCAB, lambda: b"<pad>\n<unk>\ndog\ndog\n", "holds a word twice"),
        (VOCAB, lambda: b"<pad>\n<unk>\n\xff\n", "utf-8"),
        (GOLDEN, golden_of_int8, "has no vectors for float32"),
        (ENCODER_INT8, lambda: b"no graph", "ONNX Runtime cannot load it"),
        (EXPLAIN_INT8, lambda: b"no graph", "does not open, or does not run"),
        (EXPLAIN, lambda: b"no graph", "does not open, or does not run: [ONNXRuntimeError] : 7"),
        (EXPLAIN, lambda: encoder_graph(word_table(), tree=True), "weights: Field required"),
        (EXPLAIN, lambda: explained(weights='{"b": 0}'), "do not agree on b, table"),
        (EXPLAIN, lambda: explained(weights='{"table": 1000000000}'), "lies outside encoder.onnx"),
        (EXPLAIN, lambda: explained(gate='["a", "b"]'), "gate names 2 of 1"),
    ],
)
def test_a_file_that_does_not_fit_the_others_is_refused(
    folder: Path, pipeline: BuiltParser, name: str, make: Callable[[], bytes], reason: str
) -> None:
    if name in (ENCODER_INT8, EXPLAIN, EXPLAIN_INT8):
        build_bundle(folder.parent, pipeline, name=NAME, explain=True, int8=True)
    replace_file(folder, name, make())
    error = refusal(folder)
    assert error.file == name
    assert reason in error.reason
    if name in FILES:  # a service leaves the graphs to the sessions that serve
        with pytest.raises(BundleError) as served:
            LoadedModel(bundle.decode(*bundle.read_files(folder)), "cpu", 1)
        assert served.value.file == name


def test_a_folder_that_is_replaced_while_it_is_read_is_whole_or_refused(
    tmp_path: Path, folder: Path, pipeline: BuiltParser
) -> None:
    over = threading.Event()

    def replace() -> None:
        for labels in [("bad", "fair", "good"), ("no", "yes")] * 10:  # other cards, other files
            build_bundle(tmp_path, pipeline, name=NAME, labels=labels)
        over.set()

    writer = threading.Thread(target=replace)
    writer.start()
    complete = 0
    while not over.is_set():
        with contextlib.suppress(BundleError):
            read = bundle.read(folder)
            for name, content in read.files.items():
                assert hashlib.sha256(content).hexdigest() == read.card.files[name]
            complete += 1
    writer.join()
    assert complete
