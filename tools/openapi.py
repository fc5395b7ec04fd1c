"""openapi: the OpenAPI document of the service."""

import json

import typer

from heedful.app.application import create_app
from heedful.app.settings import Settings


def command() -> None:
    """Print the OpenAPI document of the service."""
    typer.echo(json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False))
