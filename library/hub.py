"""Bundles on the Hugging Face hub: `pull` checks all hashes before anything is loaded. `heedful push` uploads.

Address and token are huggingface_hub's settings: HF_ENDPOINT, HF_TOKEN or `hf auth login`.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, errors

from heedful.export.bundle_writer import check_replaceable
from heedful.files.atomic import replace_folder
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import CARD, Card
from heedful.runtime.bundles.shipped import PARSER
from heedful.runtime.errors import BundleError, HeedfulError
from heedful.text.parse import fingerprint

HTTPError: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]  # of httpx or httpx2
CACHE = Path.home() / ".cache" / "heedful"
"""The folder in which `heedful.load("hf://..")` keeps bundles."""


class HubError(HeedfulError):
    """The hub cannot be reached, or refuses the request; the message says which and why."""


def pull(repository: str, models: Path, *, version: str | None = None) -> Path:
    """Download a bundle into the folder `models`, under its name, and its parser into the same folder.

    `repository` is owner/name, or owner/name@revision with a branch, tag or commit; without it, the newest revision.
    The files are compared with the hashes in the card, and the card with `version` if that is given. A parser that the
    folder holds is kept if it is the bundle's. Raises BundleError for any difference and where something else has the
    bundle's name, HubError; then nothing is written.
    """
    models.mkdir(parents=True, exist_ok=True)
    name, _, revision = repository.partition("@")
    with tempfile.TemporaryDirectory(dir=models, prefix=".pull-") as temporary:
        download = Path(temporary) / "bundle"
        with hub_errors(repository):
            HfApi().snapshot_download(name, revision=revision or None, local_dir=download)
        card = bundle.read_card(download, named=False)
        if version is not None and card.version != version:
            raise BundleError(card.name, CARD, f"is version {card.version}, not {version}")
        check_replaceable(models / card.name)
        parser = download / PARSER
        if (models / PARSER).is_dir():
            parser = models / PARSER
        check_parser(card, parser)
        folder = download.rename(download.with_name(card.name))
        files = bundle.read_files(folder)[1]
        if (folder / PARSER).is_dir() and parser == download / PARSER:
            (folder / PARSER).rename(models / PARSER)
        with replace_folder(models / card.name) as new:
            for name, content in {**files, CARD: (folder / CARD).read_bytes()}.items():
                (new / name).write_bytes(content)
    return models / card.name


def pull_to_cache(repository: str) -> Path:
    """The bundle in the cache, downloaded first if it is new. Each revision has a folder. Raises what `pull` raises."""
    folder = CACHE / repository.replace("/", "--")
    for card in folder.glob(f"*/{CARD}"):
        return card.parent
    return pull(repository, folder)


def check_parser(card: Card, pipeline: Path) -> None:
    """Raise BundleError unless the folder holds the parser that the bundle was trained with, or it needs none."""
    if not card.needs_parser:
        return
    if not pipeline.is_dir() or fingerprint(pipeline) != card.parser.fingerprint:
        reason = (
            f"was made with the parser {card.parser.name} ({card.parser.fingerprint[:12]}), which "
            f"{pipeline} does not hold: name another folder, or put that parser there"
        )
        raise BundleError(card.name, CARD, reason)


@contextmanager
def hub_errors(repository: str) -> Iterator[None]:
    """Raise the hub's errors as HubError."""
    try:
        yield
    except (HTTPError, errors.HFValidationError, OSError) as error:
        reason = " ".join(str(error).split())
        raise HubError(f"the hub and {repository}: {reason}") from error
