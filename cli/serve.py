"""serve: the service, with a flag for each of its settings."""

import inspect
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from heedful.app import settings
from heedful.runtime.bundles.shipped import REMEDY
from heedful.runtime.errors import StartupError


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one flag per field of Settings, with its name and help."""
    flags = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(
                    settings.flag_name(field),
                    metavar=type_name(field),
                    help=help_text(field),
                    show_default=False,
                ),
            ],
        )
        for field in settings.Settings.model_fields
    ]
    command.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return command


def type_name(field: str) -> str:
    """INT, FLOAT, PATH or TEXT, or the allowed values."""
    annotation = settings.Settings.model_fields[field].annotation
    choices = get_args(annotation) or (annotation,)
    if all(isinstance(choice, str) for choice in choices):
        return "|".join(choices)
    names = {int: "INT", float: "FLOAT", bool: "TRUE|FALSE", Path: "PATH"}
    return names.get(choices[0], "TEXT")


def help_text(field: str) -> str:
    """The description, the environment variable, and the default if there is one."""
    info = settings.Settings.model_fields[field]
    default = "" if info.default in (None, (), {}) else f", default {info.default}"
    return f"{info.description} ({settings.environment_name(field)}{default})"


@with_settings
def command(**flags: Any) -> None:
    """Serve the bundles over HTTP. Each flag is also an environment variable.

    Example: heedful serve --models bundles --port 8000
    """
    # Until the service sets its own handlers: without any, process 1 of a container ignores these signals.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there are models to reload
    loaded = settings.load(**{name: value for name, value in flags.items() if value is not None})
    if not loaded.models.is_dir():  # refused before it listens
        raise StartupError(
            f"there is no folder {loaded.models}: name one that holds bundles, or {REMEDY}"
        )
    # Before numpy is imported: its idle BLAS threads spin, and halve what the encoders get done.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from heedful.app.process.serve import serve  # takes seconds: a wrong setting is refused before

    serve(loaded)
