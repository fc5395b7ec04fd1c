"""What a frozen encoder makes of each text: computed once, kept in the cache, and read in every epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track

from heedful.text.arrays import Ints
from heedful.training.cache import Arrays, cached
from heedful.training.data import Rows, padded_index
from heedful.training.model import EncodedBatch, TrainingModel

BATCH = 256
Halves = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRows(Rows):
    """Texts with what `SentenceEncoder.encode_base` gives for them. The words of text i are `stops[i]:stops[i + 1]`."""

    vectors: Halves  # (N, D)
    words: Halves  # (W, E)
    stops: Ints  # (N + 1,)

    def batch(
        self, chosen: Ints, drop: Callable[[int], npt.NDArray[np.bool_]] | None
    ) -> EncodedBatch:
        """As `Rows.batch`, with the vectors (B, D) and the words (B, L, E) in float32."""
        plain = Rows.batch(self, chosen, drop)
        places, inside = padded_index(self.stops, chosen)
        words = np.zeros((*inside.shape, self.words.shape[1]), np.float32)
        words[inside] = self.words[places]
        return EncodedBatch(
            **_fields(plain), vectors=self.vectors[chosen].astype(np.float32), words=words
        )


def encoded(model: TrainingModel, rows: Rows, cache: Path, *, half: bool) -> EncodedRows:
    """The texts of `rows` as the model's frozen encoder reads them, in bfloat16 with `half`."""
    arrays = cached(
        cache,
        _key(model, rows, half=half),
        lambda: _encode(model, rows, half=half),
        prefix="encoded-",
    )
    vectors, words, stops = (arrays[name] for name in ("vectors", "words", "stops"))
    return EncodedRows(**_fields(rows), vectors=vectors, words=words, stops=stops)


def _key(model: TrainingModel, rows: Rows, *, half: bool) -> Iterator[bytes]:
    yield str(half).encode()
    for name, weight in model.sentence.named_parameters():
        if not weight.requires_grad:
            yield name.encode() + weight.cpu().numpy().tobytes()
    yield model.alpha.cpu().numpy().tobytes()
    for array in (rows.ids, rows.heads, rows.bounds):
        yield array.tobytes()


def _encode(model: TrainingModel, rows: Rows, *, half: bool) -> Arrays:
    """The arrays of `EncodedRows`."""
    lengths = np.minimum(np.diff(rows.bounds), model.sentence.encoder.head_words)
    stops = np.concatenate([[0], np.cumsum(lengths)])
    order = np.array(list(rows.index.values()))
    order = order[np.argsort(np.diff(rows.bounds)[order], kind="stable")]
    groups = np.array_split(order, -(-len(order) // BATCH))
    device = model.alpha.device.type
    vectors, words = np.empty(0, np.float16), np.empty(0, np.float16)
    model.eval()
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=half):
        for group in track(groups, "encoding", transient=True):
            found, states = (
                one.half().cpu().numpy() for one in model.encode_base(rows.batch(group, None))
            )
            if not vectors.size:
                vectors = np.zeros((len(lengths), found.shape[1]), np.float16)
                words = np.zeros((stops[-1], states.shape[2]), np.float16)
            vectors[group] = found
            places, inside = padded_index(stops, group)
            words[places] = states[:, : inside.shape[1]][inside]
    return {"vectors": vectors, "words": words, "stops": stops}


def _fields(one: Any) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}
