"""selftest: the golden vectors of bundles' folders or of a running service."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Annotated
from urllib.error import HTTPError
from urllib.request import urlopen

import typer

from heedful.cli.errors import CommandError
from heedful.cli.options import URL, BundleParser, Url, parser_for
from heedful.library.load import bundle_folder
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.service import Options, running

Results = tuple[Mapping[str, float | None], Mapping[str, list[str]]]
"""`Service.deviations`, and what has changed, by model."""
TIMEOUT = 60
"""Seconds to wait for the service's answer."""


def command(
    bundles: Annotated[
        list[str] | None,
        typer.Argument(help="Bundles' names or folders; without any, ask the service."),
    ] = None,
    url: Url = URL,
    parser: BundleParser = None,
) -> None:
    """Encode the golden sentences again, and name those whose vectors moved since the bundle was exported.

    Example: heedful selftest ms-san-embed bundles/mine
    """
    if not bundles:
        typer.echo(ask(url))
        return
    by_parser: dict[str | None, list[Path]] = {}
    for folder in map(bundle_folder, bundles):
        needed = parser or read_card(folder).needs_parser
        pipeline = parser_for(folder, parser) if needed else None
        by_parser.setdefault(pipeline, []).append(folder)
    results = [run(folders, pipeline) for pipeline, folders in by_parser.items()]
    for deviations, moved in results:
        for name, deviation in deviations.items():
            unmoved = "no golden vectors" if deviation is None else f"at most {deviation:.1e} away"
            typer.echo(f"{name}: {', '.join(moved.get(name, [unmoved]))}")
    if any(moved for _, moved in results):
        raise typer.Exit(1)


def run(bundles: Sequence[Path], parser: str | None) -> Results:
    """Run the golden sentences of the bundles in this process.

    Raises BundleError if a vector moved far, CommandError for two folders of the same name.
    """
    folders: dict[str, Path] = {}
    for folder in map(Path.resolve, bundles):
        if (other := folders.setdefault(folder.name, folder)) != folder:
            raise CommandError(f"{other} and {folder} have the same name: test one at a time")

    async def test() -> Results:
        with tempfile.TemporaryDirectory() as models:
            for name, folder in folders.items():
                (Path(models) / name).symlink_to(folder)
            async with running(Options(Path(models), parser, "cpu")) as service:
                moved = await service.self_test()
                return service.deviations, moved

    return asyncio.run(test())


def ask(url: str) -> str:
    """The service's answer in one line. Raises CommandError if a vector moved, or if no answer comes."""
    try:
        # Not httpx, which a serving install lacks.
        with urlopen(f"{url}/ready?deep=1", timeout=TIMEOUT) as response:
            golden = json.load(response)["golden"]
    except HTTPError as error:
        raise CommandError(json.load(error)["error"]["message"]) from None
    except (OSError, HTTPException, ValueError) as error:  # ValueError: neither an address nor JSON
        raise CommandError(f"no answer from {url}: {error}") from error
    return ", ".join(
        f"{name} {'has none' if moved is None else f'{moved:.1e}'}"
        for name, moved in golden.items()
    )
