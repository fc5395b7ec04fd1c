from pathlib import Path

import pytest

from models.registry import ENCODERS, build
from training import config, tasks
from training.errors import ConfigError

GOOD = 'task = "sst2"\nlicence = "MIT"\n[encoder]\nname = "ms-san"\n'


def write(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text)
    return file


def test_defaults(tmp_path: Path) -> None:
    read = config.read(write(tmp_path, GOOD))
    assert read.encoder_keywords() == {"dim": 300, "max_tokens": 256}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "[optimiser]\nrat = 1\n", r"run\.toml: optimiser\.rat"),
        ("seed = 'x'\n" + GOOD, "seed"),
        ("seed = ", "not TOML"),
        ("[encoder]\nname = 'ms-san'\n", "task"),
        (GOOD + "[head]\ndropout = 1.0\n", r"head\.dropout"),
    ],
)
def test_a_wrong_file_is_named_with_its_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.read(write(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration"):
        config.read(tmp_path / "none.toml")


@pytest.mark.parametrize("file", sorted(Path("configs").glob("*.toml")), ids=lambda file: file.stem)
def test_a_published_configuration_names_its_encoder_and_a_task(file: Path) -> None:
    read = config.read(file)
    build(read.encoder.name, read.encoder_keywords())
    tasks.get(read.task)
    assert file.stem.startswith(f"{read.encoder.name}-")


def test_every_encoder_has_a_configuration() -> None:
    configured = {config.read(file).encoder.name for file in Path("configs").glob("*.toml")}
    assert configured == set(ENCODERS)
