"""all-mpnet-base-v2 (Apache-2.0), which scripts/models/all-mpnet-base-v2 fetches from PyPI."""

from pathlib import Path

from heedful.training.errors import DataMissing
from heedful.training.minilm import MiniLM, load_folder

PACKAGE = "all_mpnet_base_v2"
NAME = "mpnet"
"""Its name in configurations."""
SIZE = 768
FOLDER = Path.home() / ".cache" / "heedful" / "all-mpnet-base-v2"


def folder() -> Path:
    """The folder of the model. Raises DataMissing with the remedy."""
    if not (FOLDER / "model.safetensors").is_file():
        raise DataMissing(
            f"{FOLDER} holds no all-mpnet-base-v2: run sh scripts/models/all-mpnet-base-v2"
        )
    return FOLDER


def load(device: str = "cpu", *, half: bool = False) -> MiniLM:
    """As `minilm.load`."""
    return load_folder(folder(), device, half=half)
