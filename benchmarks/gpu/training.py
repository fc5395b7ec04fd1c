"""An epoch of training on a device."""

import json
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.records import Row
from heedful.runtime.device import Resolved
from heedful.training import checkpoint
from heedful.training.config import Paths, load, validate
from heedful.training.errors import ConfigError
from heedful.training.loop import train

CONFIG = Path("configs/ms-san-snli.toml")
BATCH = 512
TRAINING = f"""`{CONFIG}` with batches of {BATCH} pairs, the second epoch of two, the score of the dev set (9,842 pairs)
included."""


def training(device: Resolved, rows: int, data: Path, parser: Path) -> list[Row]:
    """The second of two epochs on the device. Raises DataMissing."""
    config = load(CONFIG) | {"device": device, "train_rows": rows, "epochs": 2}
    config["optimiser"] = {**config["optimiser"], "batch": BATCH}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        paths = Paths(run, data, str(parser), Path(folder) / "cache", CONFIG)
        try:
            train(validate(config, CONFIG), paths, resume=False, console=Console(quiet=True))
        except ConfigError as error:  # this torch has no CUDA
            return [{"on": device, "not measured": str(error)}]
        epochs = [json.loads(line) for line in (run / checkpoint.LOG).read_text().splitlines()]
    seconds = epochs[1]["seconds"] - epochs[0]["seconds"]
    steps = -(-rows // BATCH)
    figures = {"seconds": seconds, "pairs/s": rows / seconds, "ms a step": 1e3 * seconds / steps}
    return [{"on": device, "pairs": str(rows), **figures}]
