"""The teacher's soft trees: for each word of plain texts a few governors and relations, with their probabilities.

A tree holds less: where the teacher is unsure, the small parser learns most from its second choice. The soft trees are
stored in a folder, a file for each part of the texts, so that an interrupted run continues after the last file:

    00.npz  texts, a line each, and for their words, concatenated,
            heads (N, CANDIDATES) counted from 1, 0 the root, and head_shares; names and name_shares: relations
            to the best head. Shares are of 255, best first.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from spacy.language import Language
from torch import Tensor

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Bytes, Ints
from heedful.training.data_folder import records
from heedful.training.errors import DataMissing
from tools.parser.teacher import TreeTeacher

TEXTS = {
    "snli/train_subset.jsonl": 60_000,
    "mnli/train_subset.jsonl": 75_000,
    "nli_newprotocols/train.jsonl": 50_000,
    "nli_semi_automatic_wiki/train.jsonl": 30_000,
    "sst5/train.jsonl": 10_000,
    "trec/train.jsonl": 6_000,
    "stsb/train.jsonl": 12_000,
}
"""Texts of each file, at most, drawn at random; the licences of these data allow sharing weights."""
COUNT = 144_000
"""Texts to read: 2.1 million words, a quarter of an hour on a core."""
CANDIDATES = 4
LONGEST = 80
"""Words of a text. No more than 255: governors are bytes."""
PART = 12_000
"""Texts of a file."""
CELLS = 2_000
"""Words of a batch, padding counted."""


@dataclass(frozen=True, slots=True)
class SoftTrees:
    """T texts of N words altogether, in the tokens of the tokenizer that the teacher read with."""

    texts: tuple[str, ...]
    lengths: Ints  # (T,)
    heads: Bytes  # (N, CANDIDATES), counted from 1; 0 is the root
    head_shares: Bytes  # (N, CANDIDATES), of 255
    names: Bytes  # (N, CANDIDATES), relations to the best head: their number in the teacher's list
    name_shares: Bytes  # (N, CANDIDATES), of 255


def plain_texts(data: Path, seed: int, count: int = COUNT) -> list[str]:
    """`count` distinct texts of the files of `TEXTS` in the data folder, in random order.

    Raises DataMissing where it has none.
    """
    rng = random.Random(seed)
    drawn: dict[str, None] = {}
    for name, most in TEXTS.items():
        file = next((path for path in (data / name, data / f"{name}.gz") if path.is_file()), None)
        if file is None:
            continue
        distinct = {
            " ".join(record[field].split()): None
            for record in records(file)
            for field in ("text", "premise", "hypothesis", "a", "b")
            if field in record
        }
        texts = [text for text in distinct if text]
        drawn.update(dict.fromkeys(rng.sample(texts, min(most, len(texts)))))
    if not drawn:
        raise DataMissing(
            f"the data folder holds none of the files of plain texts: {', '.join(TEXTS)}"
        )
    return rng.sample(list(drawn), len(drawn))[:count]


def write(
    teacher: TreeTeacher, nlp: Language, texts: Sequence[str], folder: Path, console: Console
) -> None:
    """Write the teacher's soft trees of `texts`, in the tokens of `nlp`; parts in `folder` are not computed again."""
    parts = range(0, len(texts), PART)
    for part in parts:
        file = folder / f"{part // PART:02}.npz"
        if not file.exists():
            trees = read_texts(
                teacher, nlp, texts[part : part + PART], f"{file.stem} of {len(parts)}"
            )
            fields = {name: getattr(trees, name) for name in trees.__slots__}
            texts_of = np.frombuffer("\n".join(trees.texts).encode(), np.uint8)
            write_arrays(file, **fields | {"texts": texts_of})
            console.print(
                f"soft trees {file.stem}: {len(trees.texts)} texts, {len(trees.heads)} words"
            )


def load(folder: Path) -> list[SoftTrees]:
    """The parts in the folder."""
    parts = []
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as archive:
            fields = {name: archive[name] for name in archive.files}
        texts = tuple(fields["texts"].tobytes().decode().split("\n"))
        parts.append(SoftTrees(**fields | {"texts": texts}))
    return parts


def read_texts(
    teacher: TreeTeacher, nlp: Language, texts: Sequence[str], title: str = "soft trees"
) -> SoftTrees:
    """The teacher's soft trees; texts of more than LONGEST words are left out. Its encoder becomes bfloat16."""
    teacher.eval().encoder.bfloat16()
    tokenized = []
    for text in texts:
        doc = nlp.make_doc(text)
        if 0 < len(doc) <= LONGEST and not any(token.is_space for token in doc):
            tokenized.append((text, [token.text for token in doc]))
    tokenized.sort(key=lambda each: len(each[1]))
    columns: list[list[Bytes]] = [[], [], [], []]
    start = 0
    batches = []
    for end in range(1, len(tokenized) + 1):
        if end == len(tokenized) or (end + 1 - start) * (len(tokenized[end][1]) + 2) > CELLS:
            batches.append(tokenized[start:end])
            start = end
    for batch in track(batches, title):
        for column, values in zip(
            columns, _read(teacher, [words for _, words in batch]), strict=True
        ):
            column.append(values)
    return SoftTrees(
        tuple(text for text, _ in tokenized),
        np.array([len(words) for _, words in tokenized]),
        *(np.concatenate(column) for column in columns),
    )


def _read(teacher: TreeTeacher, batch: Sequence[list[str]]) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        x, arcs = teacher(batch)
        heads, head_shares = _best(arcs)
        names, name_shares = _best(teacher.relation_scores(x, heads[..., 0]))
    words = (
        torch.arange(x.shape[1])[None]
        <= torch.tensor([len(sentence) for sentence in batch])[:, None]
    )
    words[:, 0] = False  # the root
    columns = (heads, head_shares, names, name_shares)
    first, second, third, fourth = (part[words].to(torch.uint8).numpy() for part in columns)
    return first, second, third, fourth


def _best(scores: Tensor) -> tuple[Tensor, Tensor]:
    """(.., n) -> the CANDIDATES best and their shares, which sum to about 255."""
    count = min(CANDIDATES, scores.shape[-1])
    best, places = scores.float().topk(count, -1)
    shares = (255 * best.softmax(-1)).round()
    missing = (0, CANDIDATES - count)
    return torch.nn.functional.pad(places, missing), torch.nn.functional.pad(shares, missing)
