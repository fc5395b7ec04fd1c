"""The reproduced tables: their configurations in `results/tables/<name>.toml`, and their records.

results/
  summary.toml            the page's first lines, and the papers' figures
  tables/<name>.toml      a paper's table; each row is a configuration
  runs/<name>/*.json      one record per run of a row: seed, fold, scores, data
  transfer/<model>.json   logistic regression on frozen embeddings
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from heedful.training import config
from heedful.training.config import Precision, RunConfig, Section
from heedful.training.errors import ConfigError
from tools.tasks.folds import FOLDS


class RowConfig(Section):
    """A row: a configuration, with the fields of `set` replaced."""

    name: str
    config: Path
    paper: float | None = None
    paper_weights: str = ""
    """The weights that the paper counts, as it prints them."""
    transformer_weights: int = 0
    """Weights of the transformer below the encoder."""
    folds: bool = False
    """Ten runs per seed, each tested on another fold."""
    note: str = ""
    """A remark that a reader of the score needs."""
    not_run: str = ""
    """Why the row has no record."""
    changed: str = ""
    """Why a record counts although its source had uncommitted changes."""
    set: dict[str, Any] = Field(default_factory=dict)

    def runs(self, seeds: tuple[int, ...]) -> dict[str, RunConfig]:
        """Every run of the row by the name of its record. Raises ConfigError."""
        fields = _merged(config.read(self.config).model_dump(), self.set)
        folds: list[int | None] = [*range(FOLDS)] if self.folds else [None]
        name = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        configs = {}
        for seed in seeds:
            for fold in folds:
                task = fields["task"] if fold is None else f"{fields['task']}:{fold}"
                key = f"{name}-seed{seed}" + ("" if fold is None else f"-fold{fold}")
                configs[key] = RunConfig.model_validate({**fields, "seed": seed, "task": task})
        return configs


class TableConfig(Section):
    """A table of a paper."""

    title: str
    full: str | None = None
    """The row of the full model, which the other rows ablate."""
    seeds: tuple[int, ...]
    deviations: tuple[str, ...] = ()
    """How the runs of every row differ from the paper's."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Fields replaced in every row; a row's own `set` takes precedence."""
    rows: tuple[RowConfig, ...]


def read(path: Path) -> TableConfig:
    """Read a table's configuration. Raises ConfigError."""
    try:
        table = TableConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml")))
        raise ConfigError(f"no table {path.stem}: known are {known or 'none'}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    except ValidationError as error:
        raise config.first_fault(error, path) from error
    rows = (row.model_copy(update={"set": _merged(table.set, row.set)}) for row in table.rows)
    return table.model_copy(update={"rows": tuple(rows)})


def measured(results: Path, config: RunConfig) -> Any | None:
    """The record of a run with this configuration in any table, or None."""
    files = sorted(results.glob("runs/*/*.json"))
    records = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    return next((record for record in records if is_of(record, config)), None)


def is_of(record: Mapping[str, Any], config: RunConfig) -> bool:
    """Whether the record has this configuration, in either precision and on any device; a newer field has its default.

    A run in the other precision scores like another seed (docs/notes/papers.md).
    """
    recorded = RunConfig.model_validate(record["config"])
    alike = in_precision(recorded, config.optimiser.precision)
    return alike.model_copy(update={"device": config.device}) == config


def in_precision(config: RunConfig, precision: Precision) -> RunConfig:
    """The same run with the products of its training in this precision."""
    optimiser = config.optimiser.model_copy(update={"precision": precision})
    return config.model_copy(update={"optimiser": optimiser})


def records(results: Path, table: str, row: RowConfig, seeds: tuple[int, ...]) -> list[Any]:
    """The existing records of a row, in the order of its runs."""
    files = (results / "runs" / table / f"{name}.json" for name in row.runs(seeds))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def _merged(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` updated with `changes`, nested tables merged."""
    merged = dict(fields)
    for name, value in changes.items():
        inner = isinstance(value, Mapping) and isinstance(fields.get(name), Mapping)
        merged[name] = _merged(fields[name], value) if inner else value
    return merged
