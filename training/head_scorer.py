"""Train the head scorer (models.head_scorer) on a treebank and on the trees of a larger parser.

Its words and windows begin as those of the transition parser, which learned from the same. At first
they stay as they are, so that they are computed once and an epoch costs little; then all learns but
the tables of words.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import spacy
import torch
from rich.console import Console
from spacy.tokens import Doc
from spacy.vocab import Vocab
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.head_scorer import HeadScorer
from heedful.text.batch import plan
from heedful.text.trees import ROOT
from heedful.text.word_features import WordFeatures, pad
from heedful.training import checkpoint, parser, tok2vec, tree_teacher, treebank

Ints = npt.NDArray[np.int64]
IGNORED = tree_teacher.UNKNOWN
TOKENS_A_BATCH = 1536
EPOCHS, FINE_TUNING = 1, 8
RATE, FINE_TUNING_RATE, WARM_UP = 3e-3, 1.5e-3, 100


@dataclass(frozen=True, slots=True)
class Example:
    """L words. `heads` counts from 1, 0 is the root; relations are those to words, IGNORED for a root."""

    features: Ints  # (L, FEATURES)
    heads: Ints  # (L,)
    relations: Ints  # (L,)

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, slots=True)
class Trained:
    """A model with what its features and answers mean."""

    model: HeadScorer
    words: WordFeatures
    labels: tuple[str, ...]


def train_head_scorer(
    data: Path, start: Path, file: Path, *, seed: int, cache: Path, console: Console
) -> Trained:
    """Train on EWT, twice, and on the trees that `training.tree_teacher` gives to plain texts.

    `start` is a pipeline of `training.parser.train_parser`, whose words and windows it begins with.
    The weights are kept in `file`; where they are there nothing is trained. Raises DataMissing, and
    ParserError for another kind of pipeline.
    """
    nlp = spacy.load(start)
    words = tok2vec.features(nlp, start)
    if not file.exists():
        blank = spacy.blank("en")
        gold = {split: treebank.sentences(data, split) for split in ("train", "dev")}
        learned = [
            sentence
            for part in (seed, seed + 1)
            for sentence in tree_teacher.aligned(blank, treebank.grouped(gold["train"], part))
        ]
        silver = parser.silver(blank, gold["train"], data, seed, cache, console)
        learned += [as_sentence(doc) for doc in silver if not _has_space(doc)]
        console.print(f"{len(learned)} texts with trees")
        labels = tuple(sorted({name for one in learned for name in one.relations} - {"", ROOT}))
        model = tok2vec.head_scorer(nlp, words, len(labels), start)
        dev = examples(tree_teacher.aligned(blank, gold["dev"]), blank.vocab, words, labels)
        own = examples(learned, blank.vocab, words, labels)
        train(model, own, dev, seed=seed, console=console)
        checkpoint.save(file, {"labels": [*labels], "weights": model.state_dict()})
    state = checkpoint.load(file)
    model = tok2vec.head_scorer(nlp, words, len(state["labels"]), start)
    model.load_state_dict(state["weights"])
    return Trained(model.eval(), words, tuple(state["labels"]))


def examples(
    sentences: Sequence[tree_teacher.Sentence],
    vocab: Vocab,
    words: WordFeatures,
    labels: Sequence[str],
) -> list[Example]:
    number = {name: i for i, name in enumerate(labels)}
    return [
        Example(
            words([Doc(vocab, words=one.words)]),
            np.array(one.heads),
            np.array([number.get(name, IGNORED) for name in one.relations]),
        )
        for one in sentences
    ]


def as_sentence(doc: Doc) -> tree_teacher.Sentence:
    """A document with its tree, as it stands."""
    return tree_teacher.Sentence(
        [token.text for token in doc],
        [0 if token.head.i == token.i else token.head.i + 1 for token in doc],
        [token.dep_ for token in doc],
    )


def train(
    model: HeadScorer,
    learned: Sequence[Example],
    dev: Sequence[Example],
    *,
    seed: int,
    console: Console,
    epochs: tuple[int, int] = (EPOCHS, FINE_TUNING),
) -> None:
    """AdamW in two stages, each with warm-up and a rate that falls in a line to 0: the first on words and
    windows as they are, the second on everything but the tables of words.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    encoded = encode(model, learned)
    for part in (model.words.vectors, model.words.tables):
        part.requires_grad_(False)
    everything = [p for p in model.parameters() if p.requires_grad]
    encoder = {id(p) for part in (model.words, model.windows) for p in part.parameters()}
    scorers = [p for p in everything if id(p) not in encoder]
    stages = ((scorers, RATE, epochs[0]), (everything, FINE_TUNING_RATE, epochs[1]))
    for stage, (weights, rate, count) in enumerate(stages, 1):
        optimiser = torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
        steps = count * len(plan([len(one) for one in learned], TOKENS_A_BATCH))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _factor(steps))
        for epoch in range(1, count + 1):
            model.train()
            losses = []
            for batch in _batches(learned, rng):
                features, heads, relations = collate([learned[i] for i in batch])
                mask = features[..., 0] > 0
                if stage == 1:
                    x = nn.utils.rnn.pad_sequence([encoded[i] for i in batch], batch_first=True)
                else:
                    x = model.encode(features, mask)
                loss = _loss(model, x, mask, heads, relations)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(weights, 1.0)
                optimiser.step()
                schedule.step()
                losses.append(loss.item())
            uas, las = accuracy(model, dev)
            console.print(
                f"stage {stage}, epoch {epoch}: loss {np.mean(losses):.3f}, "
                f"dev: {uas:.4f} of heads, {las:.4f} with relation"
            )


def encode(model: HeadScorer, texts: Sequence[Example]) -> list[Tensor]:
    """(L, D) each: what words and windows give, without dropout."""
    model.eval()
    encoded: list[Tensor] = [torch.empty(0)] * len(texts)
    with torch.no_grad():
        for batch in plan([len(one) for one in texts], 4 * TOKENS_A_BATCH):
            features, _, _ = collate([texts[i] for i in batch])
            x = model.encode(features, features[..., 0] > 0)
            for i, row in zip(batch, x, strict=True):
                encoded[i] = row[: len(texts[i])].clone()
    return encoded


def collate(batch: Sequence[Example]) -> tuple[Tensor, Tensor, Tensor]:
    """Features (B, L, F), heads and relations (B, L), IGNORED behind a sentence's end."""
    lengths = np.array([len(one) for one in batch])
    features = pad(np.concatenate([one.features for one in batch]), lengths)
    heads = np.full(features.shape[:2], IGNORED, np.int64)
    relations = heads.copy()
    for row, one in enumerate(batch):
        heads[row, : len(one)] = one.heads
        relations[row, : len(one)] = one.relations
    return torch.from_numpy(features), torch.from_numpy(heads), torch.from_numpy(relations)


def accuracy(model: HeadScorer, gold: Sequence[Example]) -> tuple[float, float]:
    """Shares of words whose best head, and best head and relation, are right, before trees are made.

    A root needs no relation. Punctuation counts, words without a head do not.
    """
    model.eval()
    right = labelled = known = 0
    with torch.inference_mode():
        for batch in plan([len(one) for one in gold], TOKENS_A_BATCH):
            features, heads, relations = collate([gold[i] for i in batch])
            scores, dependents, governors = model(features)
            best = scores.argmax(-1)
            names = model.relations(dependents, governors, (best - 1).clamp(min=0)).argmax(-1)
            hit = (best == heads) & (heads != IGNORED)
            known += int((heads != IGNORED).sum())
            right += int(hit.sum())
            labelled += int((hit & ((names == relations) | (heads == 0))).sum())
    return right / known, labelled / known


def _loss(model: HeadScorer, x: Tensor, mask: Tensor, heads: Tensor, relations: Tensor) -> Tensor:
    """Cross-entropy of heads, and of relations given the right heads."""
    scores, dependents, governors = model.score(x, mask)
    names = model.relations(dependents, governors, (heads - 1).clamp(min=0))
    return functional.cross_entropy(
        scores.flatten(0, 1), heads.flatten(), ignore_index=IGNORED
    ) + functional.cross_entropy(names.flatten(0, 1), relations.flatten(), ignore_index=IGNORED)


def _factor(steps: int) -> Callable[[int], float]:
    """Of the rate at a step: up in a line, then down in a line to 0."""
    return lambda step: min(1.0, (step + 1) / WARM_UP) * max(0.0, 1 - step / steps)


def _has_space(doc: Doc) -> bool:
    return any(token.is_space for token in doc)


def _batches(texts: Sequence[Example], rng: random.Random) -> list[list[int]]:
    """Indices in batches of like lengths, others in every epoch, in random order."""
    order = rng.sample(range(len(texts)), len(texts))
    batches = [
        [order[i] for i in batch] for batch in plan([len(texts[i]) for i in order], TOKENS_A_BATCH)
    ]
    rng.shuffle(batches)
    return batches
