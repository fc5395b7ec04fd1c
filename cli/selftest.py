"""selftest: the golden sentences of a running service or of bundles' folders, or golden vectors written."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Annotated
from urllib.error import HTTPError
from urllib.request import urlopen

import typer

from heedful.cli.errors import CommandError
from heedful.cli.options import URL, BundleParser, Url, parser_for
from heedful.export.bundle_writer import rewrite
from heedful.export.golden import golden
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import GOLDEN, Card
from heedful.runtime.bundles.self_test import SelfTest
from heedful.runtime.service import Options, running
from heedful.text import parse

TIMEOUT = 60
"""Seconds to wait for the service's answer."""


def command(
    bundles: Annotated[
        list[Path] | None, typer.Argument(help="Bundle folders; without any, ask the service.")
    ] = None,
    write_them: Annotated[
        bool, typer.Option("--write", help="Write golden vectors into the bundles.")
    ] = False,
    url: Url = URL,
    parser: BundleParser = None,
) -> None:
    """Encode the golden sentences again, and name those whose vectors moved since the bundle was exported.

    Example: heedful selftest bundles/ms-san-embed
    """
    if write_them and not bundles:
        raise CommandError("--write: name the folders of the bundles")
    if not bundles:
        typer.echo(ask(url))
        return
    beside: dict[str, list[Path]] = {}
    for folder in bundles:
        beside.setdefault(parser_for(folder, parser), []).append(folder)
    if write_them:
        for pipeline, folders in beside.items():
            loaded = parse.Parser.load(pipeline)
            for folder in folders:
                card = write_golden(folder, loaded)
                typer.echo(f"{folder}: version {card.version}, golden vectors written")
        return
    tests = [run(folders, pipeline) for pipeline, folders in beside.items()]
    for found in tests:
        for name, deviation in found.deviations.items():
            said = "no golden vectors" if deviation is None else f"at most {deviation:.1e} away"
            typer.echo(f"{name}: {', '.join(found.moved.get(name, [said]))}")
    if any(found.moved for found in tests):
        raise typer.Exit(1)


def write_golden(folder: Path, parser: parse.Parser) -> Card:
    """Write golden vectors into the bundle, or replace them; nothing else changes.

    Raises BundleError; CommandError for another parser than the bundle's.
    """
    bundle = read(folder, golden=False)
    if bundle.card.parser.fingerprint != parser.fingerprint:
        raise CommandError(
            f"{folder} was made with the parser {bundle.card.parser.name}: name it with --parser"
        )
    files = {**bundle.files, GOLDEN: golden(bundle, parser.parse).to_bytes()}
    return rewrite(folder, bundle.card.fields(), files)


def run(bundles: Sequence[Path], parser: str) -> SelfTest:
    """Run the golden sentences of the bundles in this process.

    Raises BundleError if one moved far, CommandError for two folders of one name.
    """
    named: dict[str, Path] = {}
    for folder in map(Path.resolve, bundles):
        if (other := named.setdefault(folder.name, folder)) != folder:
            raise CommandError(f"{other} and {folder} have the same name: test one at a time")

    async def test() -> SelfTest:
        with tempfile.TemporaryDirectory() as models:
            for name, folder in named.items():
                (Path(models) / name).symlink_to(folder)
            async with running(Options(Path(models), parser, "cpu")) as service:
                return await service.self_test()

    return asyncio.run(test())


def ask(url: str) -> str:
    """The service's answer in one line. Raises CommandError if something moved, or if there is none."""
    try:
        # Not httpx, which a serving install lacks.
        with urlopen(f"{url}/ready?deep=1", timeout=TIMEOUT) as response:
            golden = json.load(response)["golden"]
    except HTTPError as error:
        raise CommandError(json.load(error)["error"]["message"]) from None
    except (OSError, HTTPException, ValueError) as error:  # ValueError: no address, or no JSON
        raise CommandError(f"no answer from {url}: {error}") from error
    return ", ".join(
        f"{name} {'has none' if moved is None else f'{moved:.1e}'}"
        for name, moved in golden.items()
    )
