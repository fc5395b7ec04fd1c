"""A task's examples -> ids, trees, targets and initial word vectors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful.models.lama import LAMA
from heedful.models.registry import reads_trees
from heedful.models.sentence import Encoder
from heedful.text.arrays import Ints
from heedful.text.errors import ParserError
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import transformer, vectors, word2vec
from heedful.training.config import Paths, RunConfig
from heedful.training.data import Examples, vocabulary
from heedful.training.emoji_vectors import NamedEmoji, new_emoji
from heedful.training.objectives import Objective
from heedful.training.parses import Parsed, parse
from heedful.training.restore import read_words
from heedful.training.restore_bundle import bundle_labels, is_bundle
from heedful.training.tasks.base import Example, Task


@dataclass(frozen=True, slots=True)
class Prepared:
    """The data of a run as arrays, its vocabulary and initial word vectors."""

    train: Examples
    dev: dict[str, Examples]
    lexicon: Lexicon
    words: Tensor | nn.Module
    """(V, D) initial word vectors, or the transformer in their place."""
    parser: Parser


def prepare(
    config: RunConfig,
    task: Task,
    objective: Objective,
    train: Sequence[Example],
    devs: Mapping[str, Sequence[Example]],
    paths: Paths,
) -> Prepared:
    """Parse the texts of `train`, of the dev splits and, for the vocabulary, of the task's background.

    Raises DataMissing, DataError, ParserError, ConfigError, RunMissing.
    """
    parser = Parser.load(paths.parser)
    read_texts = partial(
        parse,
        pipeline=paths.parser,
        fingerprint=parser.fingerprint,
        max_tokens=config.max_tokens,
        cache_dir=paths.cache,
    )
    tree = reads_trees(config.encoder.name, config.encoder_keywords())
    if tree and not parser.trees:
        raise ParserError(
            f"{config.encoder.name} reads trees, and there is no parser: name a spaCy pipeline with --parser"
        )
    train_texts = read_texts(_texts(train), tree=tree)
    dev_texts = {name: read_texts(_texts(dev), tree=tree) for name, dev in devs.items()}
    lexicon: Lexicon
    words: Tensor | nn.Module
    if config.init_from and _keeps_words(config.init_from, config, task):
        lexicon, words = read_words(config.init_from, config)
        if is_bundle(config.init_from) and isinstance(lexicon, Vocab):
            lexicon, words = _with_emoji(lexicon, train_texts.counts(), config)
    elif config.transformer:
        words, lexicon = transformer.load(
            config.transformer, config.device, freeze_pieces="pieces" in config.freeze
        )
    else:
        sources = task.background if config.words.background_min_count is not None else ()
        background = [read_texts(_texts(source.read(paths.data)), tree=False) for source in sources]
        lexicon, words = _word_table(config, train_texts, background, paths.data)
    examples = Examples.of(train, train_texts.rows(lexicon), objective.targets)
    if size := task.kind == "embedding" and config.distillation.hard_batch_size:
        rng = np.random.default_rng(config.seed)
        examples = replace(examples, groups=neighbourhoods(examples.targets, size, rng))
    return Prepared(
        train=examples,
        dev={
            name: Examples.of(devs[name], texts.rows(lexicon)) for name, texts in dev_texts.items()
        },
        lexicon=lexicon,
        words=words,
        parser=parser,
    )


def _keeps_words(earlier: Path, config: RunConfig, task: Task) -> bool:
    """Whether the run keeps the vocabulary of `init_from`: an embedding or a bundle can then train on fewer texts."""
    return (
        "words" in config.freeze
        or task.kind == "embedding"
        or (is_bundle(earlier) and bundle_labels(earlier) == task.labels)
    )


def _with_emoji(lexicon: Vocab, counts: Counter[str], config: RunConfig) -> tuple[Vocab, Tensor]:
    """A bundle's vocabulary with the frequent emoji that it lacks, and a table with vectors of these emoji alone."""
    assert config.init_from is not None, "the bundle"
    source = vectors.Table.bundle(config.init_from)
    emoji = new_emoji(lexicon, counts, source, config.words.min_count)
    words = torch.zeros(len(lexicon), config.words.dim)
    listed = Vocab([*lexicon.words[len(SPECIAL) :], *emoji], lexicon.composed)
    return listed, torch.cat([words, torch.from_numpy(NamedEmoji(source).look_up(emoji))])


def _word_table(
    config: RunConfig, train: Parsed, background: list[Parsed], data: Path
) -> tuple[Vocab, Tensor]:
    """The vocabulary and its (V, D) initial vectors."""
    words = config.words
    source: vectors.VectorSource
    if words.vectors == "word2vec":
        source = word2vec.train([train, *background], dim=words.dim, seed=config.seed)
    else:
        source = NamedEmoji(vectors.source(words.vectors, data, config.device))
    vocab = vocabulary(
        train.counts(),
        sum((texts.counts() for texts in background), Counter()),
        source.has,
        min_count=words.min_count,
        background_min_count=words.background_min_count,
        composed=words.subword_rows,
        limit=words.limit,
    )
    table = vectors.initial(
        source.look_up(vocab.words),
        source.has(vocab.words),
        dim=words.dim,
        scale=words.init_rms,
        seed=config.seed,
    )
    return vocab, table


def neighbourhoods(vectors: npt.NDArray[Any], size: int, rng: np.random.Generator) -> list[Ints]:
    """(N, D) -> groups of at most `size` rows that are near each other, and so hard to tell apart.

    The rows are halved repeatedly along a random direction between two of them (a random projection tree).
    """
    pending, groups = [np.arange(len(vectors))], []
    while pending:
        group = pending.pop()
        if len(group) <= size:
            groups.append(group)
            continue
        first, second = vectors[rng.choice(group, 2, replace=False)].astype(np.float32)
        order = np.argsort(vectors[group].astype(np.float32) @ (first - second), kind="stable")
        pending += np.array_split(group[order], 2)
    return groups


def start_context(encoder: Encoder, words: Tensor | nn.Module, ids: Ints) -> None:
    """Initialise LAMA's context vector with the mean of the corpus' word vectors."""
    if isinstance(encoder, LAMA) and encoder.context is not None and isinstance(words, Tensor):
        listed = ids[ids < len(words)]
        counts = torch.from_numpy(np.bincount(listed, minlength=len(words))).float()
        encoder.start_context(counts @ words / counts.sum())


def _texts(examples: Sequence[Example]) -> list[str]:
    return [text for example in examples for text in example.texts]
