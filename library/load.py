"""heedful.load: a bundle by its name, its folder or its place on the model hub; heedful.classify: three of them."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from heedful.library.inputs import is_count
from heedful.library.model import FittingLabels, Model
from heedful.library.processes import Processes
from heedful.runtime.bundles import bundle, shipped
from heedful.runtime.bundles.card import CARD
from heedful.runtime.bundles.loader import load_parser
from heedful.runtime.cores import usable_cores
from heedful.runtime.device import Device, resolve
from heedful.runtime.errors import BundleError, StartupError
from heedful.runtime.loaded_model import LoadedModel

HUB = "hf://"
ZERO_SHOT = ("ms-san-embed", "ms-san-nli", "ms-san-sentiment")
"""The bundles that score labels of the user's: by cosine, by entailment and by polarity."""


def load(
    model: str | Path,
    *,
    models: str | Path | None = None,
    parser: str | Path | None = None,
    device: Device = "auto",
    threads: int | None = None,
    processes: int = 1,
) -> Model:
    """Load a bundle.

    `model` is a bundle's name, its folder, or `hf://owner/name@revision` on the model hub, without @ the newest. A
    name is looked up in `models`, by default in $HEEDFUL_MODELS, in `bundles` here and in the package heedful-bundles.
    `parser` is the spaCy pipeline that the bundle was made with, by default the one in the same folder,
    else one among the bundles where a name is looked up.
    `threads` batches run at once, by default one a core. With `processes` above 1, long lists are
    divided among that many processes.

    Raises StartupError for an unknown name or device, a wrong number or a parser that cannot be loaded,
    BundleError and ProviderError.
    """
    if device not in get_args(Device):
        raise StartupError(f"device is {device!r}: give one of {', '.join(get_args(Device))}")
    for name, number in (("threads", threads), ("processes", processes)):
        if number is not None and not is_count(number):
            raise StartupError(f"{name} is {number!r}: give a whole number from 1")
    folder = bundle_folder(model, models)
    stored = bundle.read(folder, graphs=False)
    pipeline = parser or shipped.parser_folder(folder.parent)
    # A GPU runs one large batch at a time; on a CPU several small ones do more than one that is split.
    batches = threads or usable_cores()
    resolved = resolve(device)
    parallel, each = (1, batches) if resolved == "cuda" else (batches, 1)
    same: dict[str, Any] = {"model": folder, "parser": pipeline, "device": device}
    workers = Processes(processes, same) if processes > 1 else None
    again = partial(load_version, **same, threads=threads, processes=processes)
    loaded = LoadedModel(stored, resolved, each)
    words = parser is None and not stored.card.needs_parser
    loaded_parser = load_parser(None if words else pipeline)
    return Model(folder, loaded, loaded_parser, parallel, workers, again)


def classify(texts: Iterable[str], labels: Sequence[str], **keywords: Any) -> list[FittingLabels]:
    """How well each of your `labels` fits each text, by ZERO_SHOT's models: what the service answers.

    The keywords are those of `Model.classify`. The bundles are looked up as by `load`, and loaded once. Raises what
    `load` and `Model.classify` raise.
    """
    embedding, nli, sentiment = (_loaded(bundle_folder(name)) for name in ZERO_SHOT)
    return embedding.classify(texts, labels, nli=nli, sentiment=sentiment, **keywords)


@cache
def _loaded(folder: Path) -> Model:
    return load(folder)


def load_version(version: str, **keywords: Any) -> Model:
    """`load(**keywords)`, what a pickle of its result does. Raises BundleError for another version."""
    model = load(**keywords)
    if model.card.version != version:
        model.close()
        reason = f"is version {model.card.version}, the model that was pickled {version}"
        raise BundleError(model.card.name, CARD, f"{reason}: load it by its name")
    return model


def bundle_folder(model: str | Path, models: str | Path | None = None) -> Path:
    """The folder of a bundle, which is named as for `load`. Raises StartupError."""
    if not isinstance(model, str | PathLike):
        raise StartupError(f"model is {type(model).__name__}: give a bundle's name or its folder")
    if str(model).startswith(HUB):
        from heedful.library.hub import pull_to_cache  # needs huggingface_hub

        return pull_to_cache(str(model).removeprefix(HUB))
    if (Path(model) / CARD).is_file():
        return Path(model).resolve()
    places = [Path(models)] if models else shipped.search_folders()
    for place in places:
        if (place / model / CARD).is_file():
            return (place / model).resolve()
    known = sorted({card.parent.name for place in places for card in place.glob(f"*/{CARD}")})
    remedy = f"known are {', '.join(known)}: name one of them" if known else shipped.REMEDY
    raise StartupError(
        f"there is no bundle {str(model)!r} in {', '.join(map(str, places))}; {remedy}, or name a bundle's folder, "
        "or hf://owner/name"
    )
