"""heedful.load: a bundle by its name, folder or address on the model hub; heedful.classify, which loads three."""

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
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

    `model` is a bundle's name, its folder, or `hf://owner/name@revision` on the model hub; without @revision, the
    newest. A name is searched in `models`, by default in $HEEDFUL_MODELS, in the folder `bundles` and in the package
    heedful-bundles. `parser` is the spaCy pipeline that the bundle was trained with, by default that next to the
    bundle, else the first one in these folders. `threads` batches run at a time, by default one a core. With
    `processes` above 1, long lists are divided among that many processes.

    Raises StartupError for an unknown name or device, a wrong number or a parser that cannot be loaded, BundleError and
    ProviderError.
    """
    if device not in get_args(Device):
        raise StartupError(f"device is {device!r}: give one of {', '.join(get_args(Device))}")
    for name, number in (("threads", threads), ("processes", processes)):
        if number is not None and not is_count(number):
            raise StartupError(f"{name} is {number!r}: give a whole number from 1")
    folder = bundle_folder(model, models)
    stored = bundle.decode(*bundle.read_files(folder))
    pipeline = parser or shipped.parser_folder(folder.parent)
    # A GPU runs one large batch at a time; on a CPU several small batches are faster than a large one over threads.
    resolved, count = resolve(device), threads or usable_cores()
    batch_threads, graph_threads = (1, count) if resolved == "cuda" else (count, 1)
    keywords: dict[str, Any] = {"model": folder, "parser": pipeline, "device": device}
    workers = Processes(processes, keywords) if processes > 1 else None
    reload = partial(load_version, **keywords, threads=threads, processes=processes)
    loaded = LoadedModel(stored, resolved, graph_threads)
    only_words = parser is None and not stored.card.needs_parser
    loaded_parser = load_parser(None if only_words else pipeline)
    return Model(folder, loaded, loaded_parser, batch_threads, workers, reload)


def classify(texts: Iterable[str], labels: Sequence[str], **keywords: Any) -> list[FittingLabels]:
    """How well each of your `labels` fits each text, by ZERO_SHOT's models, as the service answers.

    The keywords are those of `Model.classify`. The bundles are searched as by `load`, and loaded once. Raises what
    `load` and `Model.classify` raise.
    """
    embedding, nli, sentiment = (shared(bundle_folder(name)) for name in ZERO_SHOT)
    return embedding.classify(texts, labels, nli=nli, sentiment=sentiment, **keywords)


@lru_cache(maxsize=8)
def shared(
    model: str | Path, models: str | Path | None = None, parser: str | Path | None = None
) -> Model:
    """The model that `classify` and the estimators of this process share: clones and pickles only hold the name."""
    return load(model, models=models, parser=parser)


def load_version(version: str, **keywords: Any) -> Model:
    """`load(**keywords)`, for pickles of its result. Raises BundleError for another version."""
    model = load(**keywords)
    if model.card.version != version:
        model.close()
        reason = f"is version {model.card.version}, the pickled model was {version}"
        raise BundleError(model.card.name, CARD, f"{reason}: load it by its name")
    return model


def bundle_folder(model: str | Path, models: str | Path | None = None) -> Path:
    """The folder of `load`'s `model`. Raises StartupError."""
    if not isinstance(model, str | PathLike):
        raise StartupError(f"model is {type(model).__name__}: give a bundle's name or its folder")
    if str(model).startswith(HUB):
        from heedful.library.hub import pull_to_cache  # needs huggingface_hub

        return pull_to_cache(str(model).removeprefix(HUB))
    if (Path(model) / CARD).is_file():
        return Path(model).resolve()
    folders = [Path(models)] if models else shipped.search_folders()
    for folder in folders:
        if (folder / model / CARD).is_file():
            return (folder / model).resolve()
    known = sorted({card.parent.name for folder in folders for card in folder.glob(f"*/{CARD}")})
    remedy = f"known are {', '.join(known)}: name one of them" if known else shipped.REMEDY
    raise StartupError(
        f"there is no bundle {str(model)!r} in {', '.join(map(str, folders))}; {remedy}, or name a bundle's folder, "
        "or hf://owner/name"
    )
