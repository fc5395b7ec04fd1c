"""Answers for tables of any size, on the machines of a Ray cluster: Parquet in, Parquet out."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import dataset, fs
from rich.console import Console

from heedful.cli.errors import CommandError
from heedful.cli.placement import Cluster, Place, default_name
from heedful.library.tables import ANSWER_COLUMNS, OUTCOME, TableModel, TableTask
from heedful.runtime.cores import usable_cores

CONNECT_SECONDS = 10.0
MADE_FROM, SUCCESS = "_made_from.json", "_SUCCESS"
"""Files in the output folder; readers of Parquet folders ignore names that begin with "_"."""


@dataclass(frozen=True, slots=True)
class Job:
    """A task for the columns `texts` of a Parquet file or folder, with the model and its keywords."""

    task: TableTask
    file: str
    out: str
    texts: Sequence[str]
    id: str | None
    model: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    place: Place = field(default_factory=lambda: Place(Path("bundles")))


def run(job: Job, cluster: Cluster, *, resume: bool, console: Console) -> None:
    """Write the answers to every row of `job.file` into the folder `job.out`, and print how many.

    Raises CommandError, StartupError, BadInput.
    """
    _check_columns(job)
    _check_address(cluster.address)
    import ray  # the extra `ray`
    from ray.data import ActorPoolStrategy, DataContext
    from ray.data.checkpoint import CheckpointConfig

    constructor = _constructor(job)
    with TableModel(**constructor).model as model:  # a wrong choice fails here, in one line
        made_from = {**asdict(job), "out": None, "version": model.card.version}
    folder = Folder(job.out)
    if folder.ended(json.loads(json.dumps(made_from, default=str)), resume=resume):
        console.print(f"{job.out} is complete already", markup=False, highlight=False)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    local = cluster.address == "local"
    machine = {"num_cpus": usable_cores() + 1, "include_dashboard": False}  # 1 reads and writes
    try:
        ray.init(cluster.address, **(machine if local else {}), logging_level="ERROR")
    except ConnectionError as error:  # of `auto`
        raise CommandError(
            "--ray: no cluster runs on this machine: start one with `ray start --head`, or name "
            "local; then add --resume"
        ) from error
    context = DataContext.get_current()
    context.enable_progress_bars = console.is_terminal
    context.checkpoint_config = CheckpointConfig(
        job.id, folder.checkpoint, delete_checkpoint_on_success=False
    )
    actors = cluster.actors or (usable_cores() if local else None)
    # A pool that grows adds its second model when half of a short run is over; a cluster may have fewer cores.
    at_once = min(actors, usable_cores()) if local and actors else 1
    rows = ray.data.read_parquet(job.file, columns=[job.id, *job.texts])
    answers = rows.repartition(target_num_rows_per_block=cluster.rows_per_file).map_batches(
        TableModel,
        fn_constructor_kwargs=constructor,
        batch_size=None,  # a block, which is a file
        batch_format="pyarrow",
        compute=ActorPoolStrategy(min_size=at_once, max_size=actors),
        num_cpus=1,
        num_gpus=1 if job.place.device == "cuda" else None,
    )
    # Dictionaries of floats would add a third to the files.
    answers.write_parquet(job.out, partition_cols=[OUTCOME], use_dictionary=False)
    ray.shutdown()
    summary = folder.end(job, dataset.dataset(job.file, format="parquet").count_rows())
    console.print(f"{job.out}: {summary}", markup=False, highlight=False)


def _constructor(job: Job) -> dict[str, Any]:
    """Keywords of TableModel, the same on every machine."""
    models = job.place.models.resolve()
    return {
        "task": job.task,
        "model": job.model or default_name(models, job.task),
        "texts": job.texts,
        "id": job.id,
        "keywords": job.keywords,
        **asdict(replace(job.place, models=models)),
    }


def _check_columns(job: Job) -> None:
    if job.id is None:
        raise CommandError("--ray needs --id-column: it names a column whose values are distinct")
    if job.id in ANSWER_COLUMNS:
        raise CommandError(f"--id-column: {job.id!r} is a column of the answers: rename it")
    columns = [job.id, *job.texts]
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise CommandError(
            f"column {twice!r} is named twice: name one for the id and another for each text"
        )
    try:
        schema = dataset.dataset(job.file, format="parquet").schema
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise CommandError(f"{job.file} is neither a Parquet file nor a folder of them") from error
    for name in columns:
        if name not in schema.names:
            raise CommandError(
                f"{job.file}: no column {name!r}: it holds {', '.join(schema.names)}; name another"
            )
    for name in job.texts:
        kind = schema.field(name).type
        categories = pyarrow.types.is_dictionary(kind)  # of pandas
        cells = kind.value_type if categories else kind
        if not (pyarrow.types.is_string(cells) or pyarrow.types.is_large_string(cells)):
            raise CommandError(f"{job.file}: column {name!r} holds {kind}: it must hold strings")


def _check_address(address: str) -> None:
    """Raise CommandError where no cluster answers: Ray itself would try for minutes, and then end the process."""
    if address in ("local", "auto"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(f"--ray: {address!r} is neither local, auto nor host:port")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise CommandError(
            f"--ray: no cluster answers at {address} ({error}): start one there with "
            "`ray start --head`, or name local"
        ) from error


class Folder:
    """The output folder, and the checkpoint that stands next to it until the folder is complete."""

    def __init__(self, out: str) -> None:
        uri = out if "://" in out else str(Path(out).resolve())
        self._name = out
        self.checkpoint = f"{uri.rstrip('/')}.checkpoint"
        self._files, self._folder = fs.FileSystem.from_uri(uri)

    def ended(self, made_from: dict[str, Any], *, resume: bool) -> bool:
        """Whether the folder is complete. Creates it with its record `made_from` where it is missing.

        Raises CommandError where it holds anything without `resume`, or something else than this run's files.
        """
        entries = self._files.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        names = {entry.base_name for entry in entries}
        if names and not resume:
            remedy = "continue with --resume, remove it, or name another folder"
            raise CommandError(f"{self._name} holds files: {remedy}")
        if not names:
            self._files.create_dir(self._folder)
            self._write(MADE_FROM, json.dumps(made_from).encode())
        elif MADE_FROM not in names:
            raise CommandError(f"{self._name} holds no run of heedful: name another folder")
        elif (recorded := self._made_from()) != made_from:
            changed = ", ".join(name for name in made_from if recorded.get(name) != made_from[name])
            raise CommandError(f"{self._name} was made with another {changed}: name another folder")
        return SUCCESS in names

    def end(self, job: Job, rows_read: int) -> str:
        """Mark the folder as complete; returns how many rows it has. Raises CommandError for fewer than `rows_read`."""
        schema = pyarrow.schema([(OUTCOME, pyarrow.string())])
        parts = dataset.partitioning(schema, flavor="hive")
        rows = dataset.dataset(
            self._folder, schema, format="parquet", filesystem=self._files, partitioning=parts
        )
        count = rows.count_rows()
        if count < rows_read:  # Ray's checkpoint skips a row whose id has an answer already
            raise CommandError(
                f"{self._name} holds {count} of the {rows_read} rows of {job.file}: the values of {job.id!r} repeat: "
                "give each row its own, and start again in another folder"
            )
        errors = rows.count_rows(filter=dataset.field(OUTCOME) == "error")
        self._write(SUCCESS, b"")
        self._files.delete_dir(fs.FileSystem.from_uri(self.checkpoint)[1])
        return f"{count} rows" + (f", {errors} of them in {OUTCOME}=error" if errors else "")

    def _write(self, name: str, content: bytes) -> None:
        with self._files.open_output_stream(f"{self._folder}/{name}") as file:
            file.write(content)

    def _made_from(self) -> dict[str, Any]:
        with self._files.open_input_stream(f"{self._folder}/{MADE_FROM}") as file:
            record: dict[str, Any] = json.load(file)
        return record
