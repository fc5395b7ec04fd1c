from pathlib import Path

import pytest

from heedful.training import tasks
from tests.builders import build_bundle, build_models

tasks.add("tools.tasks")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny bundles, which no test changes."""
    folder = tmp_path_factory.mktemp("models") / "bundles"
    folder.mkdir()
    parser = build_models(folder)
    build_bundle(folder, parser, name="tiny-related", kind="relatedness", explain=True)
    build_bundle(folder, parser, name="tiny-several", multi_label=True, explain=True)
    return folder


def write_glove(folder: Path) -> Path:
    """A file of word vectors of three values."""
    words = {"good": 1, "great": 1, "fine": 1, "bad": -1, "awful": -1, "poor": -1, "film": 0}
    rows = [f"{word} {value} 0.5 0.{i}\n" for i, (word, value) in enumerate(words.items())]
    file = folder / "glove.txt"
    file.write_text("".join(rows))
    return file
