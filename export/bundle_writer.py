"""Write or rewrite a bundle, whole or not at all (runtime.bundles.bundle has the format)."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.files.atomic import replace_folder
from heedful.runtime.bundles.bundle import read, read_card, validate_card
from heedful.runtime.bundles.card import CARD, FORMAT, Card, CardContent
from heedful.runtime.errors import BundleError


def rewrite(folder: Path, card: Mapping[str, Any], files: Mapping[str, Path | bytes]) -> Card:
    """`write` over the bundle in `folder`; files that are no part of it, such as the report of `heedful fit`, stay.

    Raises BundleError.
    """
    parts = {CARD, *read_card(folder).files, *files}
    others = [path for path in folder.iterdir() if path.name not in parts]
    return write(folder, card, files, others=others)


def write(
    folder: Path,
    card: Mapping[str, Any],
    files: Mapping[str, Path | bytes],
    *,
    others: Sequence[Path] = (),
) -> Card:
    """Write a bundle, or replace the one in `folder`, atomically; `others` are files to copy into it.

    `card` holds every field of Card except format, name, version and files, which follow from the
    folder's name and the files. Raises BundleError if the new bundle would not load, or if `folder`
    holds something else; then nothing changes.
    """
    check_replaceable(folder)
    new_card = card_of(folder.name, card, files)
    with replace_folder(folder) as new:
        for path in others:
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, new / path.name)
        for name, source in files.items():
            (new / name).write_bytes(_content(source))
        (new / CARD).write_bytes(new_card.model_dump_json(indent=2).encode() + b"\n")
        read(new)
    return new_card


def card_of(name: str, card: Mapping[str, Any], files: Mapping[str, Path | bytes]) -> Card:
    """The card of a bundle with these fields, those of `write`, and files. Raises BundleError."""
    hashes = {file: hashlib.sha256(_content(source)).hexdigest() for file, source in files.items()}
    fields = {**card, "format": FORMAT, "name": name, "files": hashes}
    content = validate_card(CardContent, name, fields)
    return Card.model_validate({**content.model_dump(), "version": content.identity()})


def check_replaceable(folder: Path) -> None:
    """Raise BundleError where a new bundle in `folder` would delete something else than a bundle."""
    filled = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    if filled and not (folder / CARD).is_file():
        reason = (
            f"is missing, and {folder} is not empty: name a new folder, "
            "an empty one or a bundle's, which is replaced"
        )
        raise BundleError(folder.name, CARD, reason)


def _content(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()
