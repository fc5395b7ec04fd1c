"""A bundle's folder, served within the process that asks it."""

import threading
from pathlib import Path

import numpy as np
import pytest

from heedful.cli.serving import server
from heedful.runtime.errors import BundleError
from heedful.training.tasks.base import Example, Source, Task
from tests.builders import BuiltParser, build_bundle

NONE = Source("none", "CC0-1.0", "none", lambda _: [])
TASK = Task("toy", "classification", ("negative", "positive"), (NONE,), NONE, NONE)
EXAMPLES = [Example((text,), 0) for text in ("a good dog", "bad hands " * 20)]


def test_a_folder_is_served_alone_and_let_go(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    (tmp_path / "broken-sst2").mkdir()
    (tmp_path / "broken-sst2" / "card.json").write_text("{}")  # a neighbour is not looked at
    before = threading.active_count()
    with server(str(tmp_path / "tiny-sst2"), url="", parser=str(pipeline.folder)) as served:
        first = served.predict(EXAMPLES, TASK)  # a text that is too long is cut
        url = served.url
        with server("tiny-sst2", url=url, parser="none") as running:
            np.testing.assert_array_equal(running.predict(EXAMPLES, TASK), first)
    assert set(first) <= {0, 1}
    assert threading.active_count() == before


def test_a_bundle_that_cannot_be_served_is_named(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    (tmp_path / "tiny-sst2" / "encoder.onnx").write_bytes(b"no graph")
    before = threading.active_count()
    with (
        pytest.raises(BundleError, match=r"tiny-sst2: encoder\.onnx"),
        server(str(tmp_path / "tiny-sst2"), url="", parser=str(pipeline.folder)),
    ):
        pass
    assert threading.active_count() == before
