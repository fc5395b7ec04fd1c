"""A user's texts and a teacher of vectors -> the task and the configurations that `heedful distill` trains."""

import random
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from heedful.text.arrays import Floats
from heedful.training.config import (
    Device,
    DistillationConfig,
    EncoderConfig,
    OptimiserConfig,
    RunConfig,
    WordsConfig,
)
from heedful.training.errors import DataError
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task

Effort = Literal["quick", "normal", "high"]
READS: dict[Effort, int] = {"quick": 300_000, "normal": 2_100_000, "high": 6_000_000}
"""How many texts training reads, one as often as there are epochs: a core reads about 1,000 a second."""
NEW_TEXTS, FEWEST = 2, 20_000
"""How many new texts normal and high make for each one; and all efforts make so many that there are FEWEST texts."""
LISTED = 0.4
"""Share of the new texts that list random words; the others have the halves of two texts."""
CROSSED_WORDS, LISTED_WORDS = range(6, 41), (1, 5)
"""How many words a text has of which half is taken, and how many are listed."""
WORD = re.compile(r"[^\W\d_]+")
EPOCHS = 30
"""At most."""
RANKED = 0.3
"""Share of the epochs in the last phase: a tenth of its loss ranks texts that lie near each other, leading parts of the
vectors are trained as vectors too, and words are rounded as they are served. quick has one phase, which ranks none."""
HELD, SHARE = 1_000, 0.1
"""Texts that are held out: this share, so many at most."""
LEAST = 200
BATCH, MANY = (64, 256), 20_000
"""Texts of a step, and of how many texts on it is the second."""
WORD_SIZE, HEADS = 300, 6
"""Values of a word vector at most, and what their number is a multiple of."""
PARTS = (64, 128, 256, 512)
NEIGHBOURS = 10
UNSTATED = "not stated: the teacher's and the texts' own"


def divided(texts: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The distinct texts to learn from, and those that are held out. Raises DataError for fewer than LEAST."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < LEAST:
        raise DataError(f"{len(distinct)} different texts are too few: give {LEAST} at least")
    order = np.random.default_rng(seed).permutation(len(distinct)).tolist()
    held = min(HELD, round(SHARE * len(distinct)))
    return [distinct[i] for i in order[held:]], [distinct[i] for i in order[:held]]


def mixed(texts: Sequence[str], effort: Effort, seed: int) -> list[str]:
    """New texts: the beginning of one text and the end of another, or a few random words of all texts.

    They show words next to other words, and rare words as often as frequent ones. A student that reads the texts half
    as often and these as well comes nearer to its teacher (docs/notes/embedding.md).
    """
    parts = [words for words in map(str.split, texts) if len(words) in CROSSED_WORDS]
    words = list(dict.fromkeys(word for text in texts for word in WORD.findall(text)))
    count = max(0 if effort == "quick" else NEW_TEXTS * len(texts), FEWEST - len(texts))
    if not parts or len(words) < max(LISTED_WORDS):
        return []
    rng = random.Random(seed)

    def new() -> str:
        if rng.random() < LISTED:
            return " ".join(rng.sample(words, rng.randint(*LISTED_WORDS)))
        first, second = rng.choice(parts), rng.choice(parts)
        start, end = rng.randint(2, len(first) - 2), rng.randint(2, len(second) - 2)
        return " ".join([*first[:start], *second[end:]])

    known = set(texts)
    return [text for text in dict.fromkeys(new() for _ in range(count)) if text not in known]


def make_task(
    name: str,
    learned: Sequence[str],
    new: Sequence[str],
    held: Sequence[str],
    vectors: Floats,
    seed: int,
) -> Task:
    """`new` are the texts of `mixed`, `vectors` (M, D) the teacher's of the held-out texts, of length 1.

    Dev pairs each of these with its nearest and with a random other one; the teacher's cosine is the gold score.
    """
    places = np.arange(len(held))
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    others = np.random.default_rng(seed).permutation(len(held))
    pairs = [
        Example((held[i], held[j]), float(cosines[i, j]))
        for partner in (cosines.argmax(axis=1), np.roll(others, 1)[np.argsort(others)])
        for i, j in zip(places.tolist(), partner.tolist(), strict=True)
    ]
    dev = Source(
        "held-out texts", UNSTATED, "each with its nearest and a random one", lambda _: pairs
    )

    def source(title: str, note: str, texts: Sequence[str]) -> Source:
        examples = [Example((text,), UNLABELLED) for text in texts]
        return Source(title, UNSTATED, note, lambda _: examples)

    train = [source(name, "distinct texts, without those held out", learned)]
    if new:
        train.append(source(f"{name}, mixed", "halves of two of them, or random words", new))
    return Task(name, "embedding", (), tuple(train), dev, dev)


def make_configs(
    task: str,
    teacher: str,
    *,
    words: str,
    size: int,
    texts: int,
    effort: Effort,
    seed: int,
    device: Device,
) -> list[RunConfig]:
    """One for each phase, of which the second begins with the first's weights, once its `init_from` is set.

    `words` names the initial word vectors, `size` the values of a teacher's vector, `texts` how many are read in an
    epoch. The settings are those that did best for `ms-san-embed` (docs/notes/embedding.md).
    """
    epochs = min(EPOCHS, max(1, round(READS[effort] / texts)))
    ranked = 0 if effort == "quick" else round(RANKED * epochs)
    parts = tuple(part for part in PARTS if part < size)
    batch = BATCH[texts >= MANY]

    def phase(
        epochs: int, rate: float, word_rate: float, *, last: bool, ranking: float = 0.0
    ) -> RunConfig:
        return RunConfig(
            task=task,
            encoder=EncoderConfig(
                name="ms-san", config={"dropout": 0.0, "dependency": False, "skip": True}
            ),
            words=WordsConfig(
                vectors=words,
                dim=min(WORD_SIZE, size) // HEADS * HEADS,
                init_rms=3.0,
                limit=65_536,
                subword_rows=14_336,
                four_bits=last,
            ),
            optimiser=OptimiserConfig(
                batch=batch, rate=rate, word_lr=word_rate, ema_decay=0.998, precision="bfloat16"
            ),
            distillation=DistillationConfig(
                teachers=(teacher,),
                size=size,
                ranking=ranking,
                dimensions=parts if last else (),
                hard_batch_size=batch if ranking else 0,
            ),
            epochs=epochs,
            patience=EPOCHS,  # all of them: the rates fall to zero with the last
            seed=seed,
            licence=UNSTATED,
            device=device,
        )

    first = phase(epochs - ranked, 1.5e-3, 2e-3, last=not ranked)
    return [first, phase(ranked, 7e-4, 1e-3, last=True, ranking=0.1)] if ranked else [first]


def agreement(student: Floats, teacher: Floats) -> tuple[float, float]:
    """Vectors (M, D) of the same texts, of length 1 -> their mean cosine, and the share of the NEIGHBOURS texts
    nearest to each by `teacher` that are among those nearest to it by `student`.
    """
    nearest = []
    for vectors in (student, teacher):
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -2)
        nearest.append(np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS])
    shared = [len(np.intersect1d(a, b)) for a, b in zip(*nearest, strict=True)]
    return float((student * teacher).sum(axis=1).mean()), float(np.mean(shared)) / NEIGHBOURS
