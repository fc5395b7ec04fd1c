"""push: a bundle to the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.runtime.bundles import bundle as bundles
from heedful.runtime.bundles.card import CARD
from heedful.runtime.bundles.shipped import PARSER, parser_folder


def command(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.")],
    repository: Annotated[str, typer.Argument(help="Where to: OWNER/NAME.")],
    private: Annotated[bool, typer.Option(help="Make a new repository private.")] = False,
) -> None:
    """Upload a bundle to the Hugging Face hub, with its parser and a model card.

    The token is HF_TOKEN, or that of `hf auth login`.

    Example: heedful push bundles/ms-san-embed me/ms-san-embed
    """
    typer.echo(push(bundle, repository, private=private))


def push(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a bundle with the parser it was made with and a model card; return the commit's address.

    Raises BundleError for a bundle that would not load, HubError.
    """
    from huggingface_hub import CommitOperationAdd, HfApi  # here: --help needs no hub extra

    from heedful.cli.hub_card import model_card
    from heedful.library.hub import check_parser, hub_errors

    stored = bundles.read(folder)
    pipeline = parser_folder(folder.resolve().parent)
    check_parser(stored.card, pipeline)
    files: dict[str, Path | bytes] = {name: folder / name for name in (CARD, *stored.files)}
    files |= {
        f"{PARSER}/{path.relative_to(pipeline).as_posix()}": path
        for path in sorted(pipeline.rglob("*"))
        if path.is_file()
    }
    files["README.md"] = model_card(stored.card, repository).encode()
    api = HfApi()
    with hub_errors(repository):
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.create_commit(
            repository,
            [CommitOperationAdd(name, source) for name, source in files.items()],
            commit_message=f"{stored.card.name} {stored.card.version}",
        )
    return str(commit.commit_url)
