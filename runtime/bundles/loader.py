"""Bundles on disk -> warm, checked models, at the start and at reloads."""

import logging
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import CARD
from heedful.runtime.bundles.shipped import REMEDY, parser_folder
from heedful.runtime.cores import usable_cores
from heedful.runtime.device import Resolved
from heedful.runtime.errors import BundleError, InferenceFailed, ProviderError, StartupError
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.memory import trim_heap
from heedful.runtime.model_registry import ModelRegistry, check_parser
from heedful.text.errors import ParserError
from heedful.text.parse import Parser

log = logging.getLogger(__name__)

SWAP_SECONDS = 0.2
"""Wait before a second search for a missing bundle: it may be between the two renames of a swap."""
NONE_LEFT = "the models folder no longer holds a bundle: the loaded models stay"


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The outcome of a reload. `refused` has a reason for each bundle whose old model stays."""

    loaded: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The models of a folder of bundles, warm and checked, and their parser."""

    registry: ModelRegistry
    parser: Parser


@dataclass(frozen=True, slots=True)
class BundleLoader:
    """Loads the bundles of a folder. This blocks: it reads files and optimises graphs."""

    folder: Path
    device: Resolved
    threads: int

    def load(self, pipeline: str | Path | None) -> Loaded:
        """All bundles, and the parser of that name or folder; with None `parser_folder`'s, if a bundle needs it.

        Folders without a card are ignored. Raises StartupError without bundles or without a parser, BundleError,
        ProviderError.
        """
        folders = self._bundles()
        if not folders and not self.folder.is_dir():
            raise StartupError(
                f"there is no folder {self.folder} with bundles: name another folder, or {REMEDY}"
            )
        if not folders:
            raise StartupError(
                f"{self.folder} holds no bundle (a folder with a {CARD}): "
                "make one with `heedful export`, or name another folder"
            )
        with ThreadPoolExecutor(1 if self.device == "cuda" else usable_cores()) as pool:
            if not pipeline and any(bundle.read_card(folder).needs_parser for folder in folders):
                pipeline = parser_folder(self.folder)
            parser_future = pool.submit(load_parser, pipeline)
            models = list(pool.map(self._open, folders))
        parser = parser_future.result()
        for model in models:
            check_parser(model.card, parser)
        return Loaded(ModelRegistry({model.card.name: model for model in models}), parser)

    def reload(self, served: ModelRegistry, parser: Parser) -> tuple[ModelRegistry, Reloaded]:
        """The folder's current models. Changed bundles are loaded and warmed up while the old models serve.

        A refused bundle leaves its old model in place and does not affect the others.
        """
        names = self._current_names(served.models)
        if not names:
            return served, Reloaded(unchanged=tuple(served.models), refused=(NONE_LEFT,))
        models: dict[str, LoadedModel] = {}
        refused = []
        for name in sorted(names):
            old = served.models.get(name)
            try:
                models[name] = self._open(self.folder / name, old, parser)
            except BundleError as error:
                refused.append(str(error))
            except (ProviderError, InferenceFailed) as error:
                refused.append(f"bundle {name}: {error}")
            if old:
                models.setdefault(name, old)
        return ModelRegistry(models), Reloaded(
            loaded=tuple(n for n, model in models.items() if model is not served.models.get(n)),
            unchanged=tuple(n for n, model in models.items() if model is served.models.get(n)),
            removed=tuple(name for name in served.models if name not in models),
            refused=tuple(refused),
        )

    def _bundles(self) -> list[Path]:
        """The folders of the bundles. The log names folders that this user may not enter: they may hold bundles."""
        for folder in self.folder.glob("*"):
            if folder.is_dir() and not os.access(folder, os.X_OK):
                log.warning("%s is ignored: this user may not enter it", folder)
        return sorted(card.parent for card in self.folder.glob(f"*/{CARD}"))

    def _current_names(self, served: Iterable[str]) -> set[str]:
        """Names of the bundles, including those of served models that are being replaced."""

        def names_on_disk() -> set[str]:
            names = {folder.name for folder in self._bundles()}
            return names | {name for name in served if (self.folder / name).is_dir()}

        names = names_on_disk()
        if not names.issuperset(served):
            time.sleep(SWAP_SECONDS)
            names |= names_on_disk()
        return names

    def _open(
        self, folder: Path, old: LoadedModel | None = None, parser: Parser | None = None
    ) -> LoadedModel:
        """The folder's model, warm, and checked with the parser if there is one; `old` if it has not changed."""
        card, files = bundle.read_files(folder)
        bundle.check_name(card, folder.name)  # a link may not serve it under a second name
        if old and old.card == card:
            return old
        if parser:
            check_parser(card, parser)
        model = LoadedModel(bundle.decode(card, files), self.device, self.threads)
        model.warm()
        model.check_golden()
        return model


def load_before_fork(folder: Path, pipeline: str | Path | None) -> Loaded:
    """`BundleLoader.load` on the CPU, for processes that fork from this one and share its memory.

    Leaves no thread behind. Raises what `load` raises.
    """
    loaded = BundleLoader(folder, "cpu", 1).load(pipeline)
    trim_heap()
    return loaded


def load_parser(pipeline: str | Path | None) -> Parser:
    """`Parser.load`. Raises StartupError."""
    try:
        return Parser.load(pipeline or None)
    except ParserError as error:
        raise StartupError(str(error)) from error
