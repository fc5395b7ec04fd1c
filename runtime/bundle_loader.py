"""Bundles on disk -> warm models: at the start, and again when the folder has changed."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.runtime import bundle
from heedful.runtime.card import CARD
from heedful.runtime.errors import BundleError, InferenceFailed, ProviderError, StartupError
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.model_registry import ModelRegistry, check_parser
from heedful.runtime.parse_process import Ready
from heedful.runtime.session import Device, SessionThreads

SWAP_SECONDS = 0.2
"""A bundle that is being replaced is nowhere between two renames: who misses one looks again."""
NONE_LEFT = "the models folder holds no bundle any more: what is loaded stays"


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload came to. `refused` says why, a line each; what was served before stays."""

    loaded: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class BundleLoader:
    """Reads the bundles of one folder. Files are read and graphs optimised in threads."""

    def __init__(self, folder: Path, device: Device, threads: int, warm_in: SessionThreads) -> None:
        self._folder = folder
        self._device = device
        self._threads = threads
        self._warm_in = warm_in

    async def load(self) -> ModelRegistry:
        """Every bundle, its sessions open but not warm yet. Other folders are left alone.

        Raises StartupError where there is none, BundleError, ProviderError.
        """
        folders = await asyncio.to_thread(self._bundles)
        if not folders and not self._folder.is_dir():
            raise StartupError(
                f"there is no folder {self._folder}: name the one that holds the bundles"
            )
        if not folders:
            raise StartupError(
                f"{self._folder} holds no bundle, that is a folder with a {CARD}: "
                "make one with `heedful export`, or name another folder"
            )
        models = [await asyncio.to_thread(self._open, folder) for folder in folders]
        return ModelRegistry({model.card.name: model for model in models})

    async def reload(self, served: ModelRegistry, parser: Ready) -> tuple[ModelRegistry, Reloaded]:
        """What the folder holds now: what has changed is loaded and warmed beside what is served.

        A bundle that is refused leaves the model of its name as it is, and the others' way free.
        """
        folders = await asyncio.to_thread(self._look, served.models)
        if not folders:
            return served, Reloaded(unchanged=tuple(served.models), refused=(NONE_LEFT,))
        models: dict[str, LoadedModel] = {}
        refused = []
        for name in sorted(folders):
            old = served.models.get(name)
            try:
                models[name] = await self._refresh(self._folder / name, old, parser)
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

    async def _refresh(self, folder: Path, old: LoadedModel | None, parser: Ready) -> LoadedModel:
        """The model in the folder now, warm; `old` itself where that is the same."""
        card, _ = await asyncio.to_thread(bundle.read_files, folder)
        if old and old.card == card:
            return old
        check_parser(card, parser)
        model = await asyncio.to_thread(self._open, folder)
        check_parser(model.card, parser)  # the folder may have been replaced since
        await model.warm(self._warm_in)
        return model

    def _bundles(self) -> list[Path]:
        return sorted(card.parent for card in self._folder.glob(f"*/{CARD}"))

    def _look(self, served: Iterable[str]) -> set[str]:
        """Names of the bundles there are, half-made ones of models that are served among them."""

        def look() -> set[str]:
            found = {folder.name for folder in self._bundles()}
            return found | {name for name in served if (self._folder / name).is_dir()}

        found = look()
        if not found.issuperset(served):
            time.sleep(SWAP_SECONDS)
            found |= look()
        return found

    def _open(self, folder: Path) -> LoadedModel:
        return LoadedModel(bundle.read(folder), self._device, self._threads)
