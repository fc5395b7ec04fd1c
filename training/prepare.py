"""A task's examples -> ids, trees, targets and initial word vectors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from heedful.models.lama import LAMA
from heedful.models.registry import reads_trees
from heedful.models.sentence import Encoder
from heedful.text.arrays import Ints
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.text.vocab import Vocab
from heedful.training import transformer, vectors, word2vec
from heedful.training.config import Paths, RunConfig, WordsConfig
from heedful.training.data import Examples, vocabulary
from heedful.training.neighbourhoods import neighbourhoods
from heedful.training.objectives import Objective
from heedful.training.parses import Parsed, parse
from heedful.training.restore import read_words
from heedful.training.tasks.base import Example, Task


@dataclass(frozen=True, slots=True)
class Prepared:
    """The data of a run."""

    train: Examples
    dev: Examples
    lexicon: Lexicon
    words: Tensor | nn.Module
    """(V, D) initial word vectors, or the transformer in their place."""
    parser: Parser


def prepare(
    config: RunConfig, task: Task, objective: Objective, train: Sequence[Example], paths: Paths
) -> Prepared:
    """Parse the texts of `train`, of the task's dev split and, for the vocabulary, of its background.

    Raises DataMissing, DataError, ParserError, ConfigError, RunMissing.
    """
    parser = Parser.load(paths.parser)
    read = partial(
        parse,
        pipeline=paths.parser,
        fingerprint=parser.fingerprint,
        max_tokens=config.max_tokens,
        cache_dir=paths.cache,
    )
    dev = task.dev.read(paths.data)
    for split, found in (("train", train), ("dev", dev)):
        task.require(split, found)
    tree = reads_trees(config.encoder.name, config.encoder_keywords())
    train_texts, dev_texts = (read(_texts(part), tree=tree) for part in (train, dev))
    lexicon: Lexicon
    words: Tensor | nn.Module
    # An embedding that goes on from another keeps its words: its texts may be fewer.
    if config.init_from and ("words" in config.freeze or task.kind == "embedding"):
        lexicon, words = read_words(config.init_from, config)
    elif config.transformer:
        words, lexicon = transformer.load(
            config.transformer, config.device, freeze_pieces="pieces" in config.freeze
        )
    else:
        widened = config.words.background_min_count is not None
        sources = task.background if widened else ()
        background = [read(_texts(source.read(paths.data)), tree=False) for source in sources]
        lexicon, words = _word_table(config.words, train_texts, background, paths.data, config.seed)
    examples = Examples.of(train, train_texts.rows(lexicon), objective.targets)
    if size := task.kind == "embedding" and config.distillation.hard_batch_size:
        rng = np.random.default_rng(config.seed)
        examples = replace(examples, groups=neighbourhoods(examples.targets, size, rng))
    return Prepared(
        train=examples,
        dev=Examples.of(dev, dev_texts.rows(lexicon)),
        lexicon=lexicon,
        words=words,
        parser=parser,
    )


def _word_table(
    config: WordsConfig, train: Parsed, background: list[Parsed], data: Path, seed: int
) -> tuple[Vocab, Tensor]:
    """The vocabulary and its (V, D) initial vectors."""
    source: vectors.VectorSource
    if config.vectors == "word2vec":
        source = word2vec.train([train, *background], dim=config.dim, seed=seed)
    else:
        source = vectors.source(config.vectors, data)
    vocab = vocabulary(
        train.counts(),
        sum((texts.counts() for texts in background), Counter()),
        source.has,
        min_count=config.min_count,
        background_min_count=config.background_min_count,
        composed=config.subword_rows,
        limit=config.limit,
    )
    table = vectors.initial(
        source.look_up(vocab.words),
        source.has(vocab.words),
        dim=config.dim,
        scale=config.init_rms,
        seed=seed,
    )
    return vocab, table


def start_context(encoder: Encoder, words: Tensor | nn.Module, ids: Ints) -> None:
    """Start LAMA's own context vector with the mean of the corpus' word vectors."""
    if isinstance(encoder, LAMA) and encoder.context is not None and isinstance(words, Tensor):
        listed = ids[ids < len(words)]
        counts = torch.from_numpy(np.bincount(listed, minlength=len(words))).float()
        encoder.start_context(counts @ words / counts.sum())


def _texts(examples: Sequence[Example]) -> list[str]:
    return [text for example in examples for text in example.texts]
