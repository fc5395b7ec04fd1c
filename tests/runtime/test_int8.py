"""Bundles with int8 graphs: read whole, and run on the CPU."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import ENCODER_INT8, EXPLAIN, EXPLAIN_INT8
from heedful.runtime.errors import BundleError
from heedful.runtime.service import Options, Service
from tests.asking import embed, explain
from tests.builders import BuiltParser, build_bundle
from tests.runtime.test_bundle import replace_file, vouch

TEXTS = ["two kids wash", "a dog"]


def test_they_answer_on_the_cpu_and_service_says_so(
    tmp_path: Path, built_parser: BuiltParser
) -> None:
    build_bundle(tmp_path, built_parser, name="tiny-sst2", explain=True)
    build_bundle(tmp_path, built_parser, name="twice-sst2", explain=True, int8=True)
    options = Options(tmp_path, str(built_parser.folder), "cpu", threads=1)
    with asyncio.Runner() as runner:
        service = Service(options)
        runner.run(service.start())
        assert service.precisions == {"tiny-sst2": "float32", "twice-sst2": "int8"}
        once, twice = (
            runner.run(embed(service, TEXTS, model=name)).value for name in service.precisions
        )
        np.testing.assert_allclose(twice, 2 * once, atol=1e-6)
        answer = runner.run(explain(service, TEXTS[:1], model="twice-sst2"))
        np.testing.assert_allclose(answer.value[1].sentences[0].embedding[0], twice[0], atol=1e-5)
        runner.run(service.stop(timeout=5))


@pytest.mark.parametrize("name", [ENCODER_INT8, EXPLAIN_INT8])
def test_one_that_does_not_run_is_refused(
    tmp_path: Path, built_parser: BuiltParser, name: str
) -> None:
    build_bundle(tmp_path, built_parser, explain=True, int8=True)
    replace_file(tmp_path / "tiny-sst2", name, b"no graph")
    with pytest.raises(BundleError) as caught:
        bundle.read(tmp_path / "tiny-sst2")
    assert caught.value.file == name


def test_files_and_card_belong_together(tmp_path: Path, built_parser: BuiltParser) -> None:
    build_bundle(tmp_path, built_parser, explain=True, int8=True)
    folder = tmp_path / "tiny-sst2"
    files = dict(bundle.read(folder).card.files)
    without = {name: digest for name, digest in files.items() if name != EXPLAIN_INT8}
    for fields, reason in (
        ({"int8": None}, "int8 and encoder.int8.onnx belong together"),
        ({"files": without}, "explain.int8.onnx must come with explain.onnx"),
        (
            {"files": {n: d for n, d in files.items() if n != EXPLAIN}},
            "explain.int8.onnx must come",
        ),
    ):
        before = (folder / "card.json").read_bytes()
        vouch(folder, **fields)
        with pytest.raises(BundleError, match=reason):
            bundle.read(folder)
        (folder / "card.json").write_bytes(before)


def test_a_card_without_them_keeps_its_version(tmp_path: Path, built_parser: BuiltParser) -> None:
    """A card written before a field existed, of which the default says nothing."""
    card = build_bundle(tmp_path, built_parser)
    file = tmp_path / "tiny-sst2" / "card.json"
    fields = json.loads(file.read_text())
    del fields["int8"], fields["training"]["teacher"]
    file.write_text(json.dumps(fields))
    assert bundle.read(tmp_path / "tiny-sst2").card == card
