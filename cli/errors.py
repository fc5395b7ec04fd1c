"""Errors that end a command with one line for the user instead of a traceback."""

import errno

from pydantic import ValidationError

from heedful.export.errors import ExportError
from heedful.runtime.errors import HeedfulError
from heedful.text.errors import GraphError, ParserError
from heedful.training.errors import TrainingError


class CommandError(Exception):
    """An option, or a file that a command reads or writes, cannot be used; the message names it and the remedy."""


USER_ERRORS = (
    HeedfulError,
    ParserError,
    GraphError,
    TrainingError,
    ExportError,
    CommandError,
)

NO_STORAGE = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM),
        *(errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
    }
)
"""Numbers of an OSError that mean that the user's disk is full, or that a path may not be written or is no folder."""

TRAIN_EXTRA = frozenset(
    {
        *("torch", "onnx", "onnxscript", "sklearn", "scipy", "transformers"),
        *("safetensors", "gensim"),
    }
)
"""Import names of the packages that the `train` extra installs."""
OTHER_EXTRAS = {"pyarrow": "parquet", "huggingface_hub": "hub", "ray": "ray"}
"""Import name of a package -> the extra that installs it."""


def describe(error: Exception) -> str:
    """The error, then a line for each cause that adds to it."""
    message = f"heedful: {error}"
    cause = error.__cause__
    while cause is not None:
        reason = " ".join(_reason(cause).split())
        if reason not in message:  # most messages quote what caused them
            message += f"\ncaused by: {type(cause).__name__}: {reason}"
        cause = cause.__cause__
    return message


def _reason(cause: BaseException) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, ValidationError):
        return "; ".join(detail["msg"] for detail in cause.errors())
    return str(cause)


def missing_extra(error: ModuleNotFoundError, *arguments: str) -> str | None:
    """What to install for a command and its arguments, if the module is one of an extra's; else None."""
    module = (error.name or "").partition(".")[0]
    if module in TRAIN_EXTRA:
        return f"heedful: {arguments[0]} needs the training extra: make dev, or pip install 'heedful[train]'"
    if module in OTHER_EXTRAS:
        on_ray = any(argument.partition("=")[0] == "--ray" for argument in arguments)
        extra = "ray" if module == "pyarrow" and on_ray else OTHER_EXTRAS[module]
        return f"heedful: this needs the extra {extra}: make dev, or pip install 'heedful[{extra}]'"
    return None
