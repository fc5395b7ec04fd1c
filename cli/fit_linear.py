"""Linear candidates of `fit`: what they read, how they are assessed, and the bundles they become."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from heedful.cli.fit_candidate import BundleFacts, Candidate, Problem
from heedful.export import bag
from heedful.export.linear_head import write_bundle
from heedful.library.load import load
from heedful.library.model import Model
from heedful.runtime.bundles import bundle
from heedful.runtime.bundles.card import Card
from heedful.text.arrays import Floats, Ints
from heedful.text.batch import Sentence
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.text.plain import plain_word
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import teachers
from heedful.training.assess import HeldOut, Split, encoder_splits, held_out, splits
from heedful.training.bag import terms, word_keys
from heedful.training.config import Device
from heedful.training.errors import ConfigError, DataError
from heedful.training.labelled_texts import text_key
from heedful.training.linear import STRENGTHS, ClassWeight, Linear, Recipe, Texts, recipes
from heedful.training.pseudo_labels import FineTunedTeacher, FrozenTeacher, Lesson

MOST_UNLABELLED = 4000
"""Texts without labels to learn from, at most; of more, so many are drawn at random."""
WORDS_PER_CLASS = 12
"""Words listed for each class."""


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """U texts without labels, none of which is a row's, and the teacher that labels them, frozen or fine-tuned too."""

    texts: Sequence[str]
    teacher: str
    """As `teachers.load` knows it."""
    frozen: Floats
    """(N + U, E) the teacher's vectors of length 1, of the N rows and of these texts."""
    fine_tune: int | None
    """The seed of the fine-tuning; None where the frozen teacher alone labels them."""
    device: Device = "cpu"


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Everything that linear candidates share: the rows as a base bundle reads them."""

    problem: Problem
    base: bundle.Bundle
    lexicon: Lexicon
    tokens: Sequence[tuple[str, ...]]
    sentences: Sequence[Sentence]
    texts: Texts
    lesson: Lesson | None = None
    """Where there are unlabelled texts."""
    truncated: int = 0
    """Rows that are longer than the base bundle reads; the rest of their words is not read."""

    @classmethod
    def read(
        cls,
        problem: Problem,
        base: Path,
        parser: str,
        unlabelled: Sequence[str] = (),
        teacher: str = teachers.MINILM,
        fine_tune: int | None = None,
        device: Device = "cpu",
    ) -> "LinearFit":
        """Tokenize and embed the rows and the texts without labels; where there are such texts, with the teacher too.

        `fine_tune` as in `Unlabelled`. Raises ConfigError for a base that `fit` made and that reads words,
        StartupError, BundleError, ParserError, DataMissing.
        """
        texts = [*(row.texts[0] for row in problem.rows), *unlabelled]
        read = bundle.read(base)
        card = read.card
        if bag.reads_words(read):
            raise ConfigError(
                f"--base: {card.name} was made by `heedful fit` and reads words already: name the bundle that it "
                f"was made from ({card.training.vectors})"
            )
        uncut = Parser.load(parser).parse(texts, card.max_tokens, tree=False)
        parses = [parse.first(read.vocab.fitting(parse.tokens)) for parse in uncut]
        tokens = [parse.tokens for parse in parses]
        with load(base, parser=parser, device="cpu") as model:
            vectors = embed(model, texts)
        pool = None
        if unlabelled:
            frozen = teachers.load(teacher, device).unit_vectors(texts)
            pool = Unlabelled(unlabelled, teacher, frozen, fine_tune, device)
        truncated = sum(parse.cut for parse in parses[: len(problem.rows)])
        return replace(cls.of(problem, read, tokens, vectors, pool), truncated=truncated)

    @classmethod
    def of(
        cls,
        problem: Problem,
        base: bundle.Bundle,
        tokens: Sequence[tuple[str, ...]],
        vectors: Floats,
        pool: Unlabelled | None = None,
    ) -> "LinearFit":
        """From the tokens and the base's vectors (N + U, D) of length 1: first the rows, then the unlabelled texts."""
        lexicon = base.vocab
        if isinstance(lexicon, Vocab) and not lexicon.composed:
            words = dict.fromkeys(plain_word(token).lower() for row in tokens for token in row)
            new = [word for word in words if word not in lexicon and word.split() == [word]]
            lexicon = Vocab([*lexicon.words[len(SPECIAL) :], *new])
        sentences = [lexicon.sentence(row, np.arange(len(row))) for row in tokens]
        texts = Texts([word_keys(sentence, len(lexicon)) for sentence in sentences], vectors)
        count = len(problem.rows)
        labelled, unlabelled = np.split(np.arange(len(texts)), [count])
        lesson = None
        if pool:
            teacher_texts = Texts(texts.keys, pool.frozen)
            frozen = FrozenTeacher(teacher_texts[labelled], teacher_texts[unlabelled])
            tuned = None
            if pool.fine_tune is not None:
                row_texts = [row.texts[0] for row in problem.rows]
                tuned = FineTunedTeacher(
                    row_texts, pool.texts, pool.fine_tune, pool.teacher, pool.device
                )
            lesson = Lesson(texts[unlabelled], frozen, tuned, teachers.title(pool.teacher))
        rows = texts[labelled]
        return cls(problem, base, lexicon, tokens[:count], sentences[:count], rows, lesson)

    def candidates(
        self, parts: Sequence[Split], class_weight: ClassWeight, processes: int = 1
    ) -> list[Candidate]:
        """Each recipe, assessed on the held-out `parts`; of many rows the pupils of a fine-tuned teacher on one part.

        Fine-tuned teachers learn in `processes` processes.
        """
        problem = self.problem
        candidates = []
        teachers = self.lesson.teachers if self.lesson else {}
        for recipe in recipes(class_weight, multi_label=problem.multi_label, teachers=teachers):
            started = time.monotonic()
            assessed = parts
            if self.lesson and self.lesson.fine_tuned and recipe.teacher == "fine-tuned":
                assessed = encoder_splits(parts)
                rows = [*(part.train for part in assessed), np.arange(len(problem.rows))]
                self.lesson.fine_tuned.prepare(recipe, rows, problem.targets, processes)
            held = self._held_out(recipe, assessed)
            name = f"{recipe.name}, C {recipe.strength:g}"
            seconds = time.monotonic() - started
            candidates.append(Candidate(name, held, seconds, partial(self.write, recipe), recipe))
        return candidates

    def references(
        self, parts: Sequence[Split], class_weight: ClassWeight
    ) -> list[tuple[str, HeldOut]]:
        """Logistic regression on the teacher's vectors, for comparison: no bundle can hold it."""
        if self.lesson is None:
            return []
        as_teacher_reads = replace(self, texts=self.lesson.frozen.rows)
        references = []
        for strength in STRENGTHS:
            recipe = Recipe(False, True, strength, class_weight, self.problem.multi_label)
            held = as_teacher_reads._held_out(recipe, parts)
            references.append((f"no candidate: {self.lesson.title} + LR, C {strength:g}", held))
        return references

    def cross_validated(self, recipe: Recipe, seed: int) -> HeldOut:
        """Answers for every row, by models that were not trained on it."""
        rows = len(self.problem.rows)
        parts = splits(self.problem.targets, self.problem.groups, seed=seed, most=rows + 1)
        return self._held_out(recipe, parts)

    def _held_out(self, recipe: Recipe, parts: Sequence[Split]) -> HeldOut:
        return held_out(
            parts,
            self.problem.targets,
            lambda part: self._fit(recipe, part.train).logits(self.texts[part.held]),
            multi_label=self.problem.multi_label,
            balanced=recipe.class_weight == "balanced",
        )

    def deciding_words(self, recipe: Recipe) -> dict[str, list[str]]:
        """For each class the words and pairs that raise its logit most over its rows."""
        linear = self.on_all_rows(recipe)
        assert linear.bag is not None
        buckets = len(linear.bag.idf)
        names: dict[int, str] = {}
        for row, keys in zip(self.tokens, self.texts.keys, strict=True):
            words = row if len(row) == len(keys) else ()  # an id is a word piece
            terms_of_text = [*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))]
            for bucket, name in zip((terms(keys) % buckets).tolist(), terms_of_text, strict=False):
                # A reader learns nothing from full stops and commas.
                if all(any(map(str.isalnum, word)) for word in name.split()):
                    names.setdefault(bucket, name.lower())
        weights = linear.words - linear.words.mean(axis=1, keepdims=True)
        features = linear.bag.features(self.texts.keys)
        deciding: dict[str, list[str]] = {}
        for number, label in enumerate(self.problem.labels):
            rows = np.flatnonzero(self.problem.targets[:, number])
            raised = np.asarray(features[rows].mean(axis=0)).ravel() * weights[:, number]
            raising = (i for i in np.argsort(-raised).tolist() if i in names and raised[i] > 0)
            first = itertools.islice(raising, WORDS_PER_CLASS)
            deciding[label] = [names[bucket] for bucket in first]
        return deciding

    def on_all_rows(self, recipe: Recipe) -> Linear:
        return self._fit(recipe, np.arange(len(self.texts)))

    def _fit(self, recipe: Recipe, rows: Ints) -> Linear:
        texts, targets = self.texts[rows], self.problem.targets[rows]
        if recipe.teacher:
            assert self.lesson is not None
            return self.lesson.teach(recipe, rows, texts, targets)
        return Linear.fit(recipe, texts, targets)

    def write(self, recipe: Recipe, facts: BundleFacts) -> Card:
        """Train the recipe on all rows and write its bundle."""
        linear = replace(self.on_all_rows(recipe), temperature=facts.temperature)
        base = self.base
        if recipe.words:
            attach = bag.with_words if recipe.vectors else bag.words_only
            base = attach(base, self.lexicon, linear)
            bag.check(base, linear, self.sentences)
        provenance = facts.provenance
        if recipe.teacher and self.lesson:
            note = f"{provenance.data.note}, and {len(self.lesson.unlabelled)} texts without labels"
            data = provenance.data.model_copy(update={"note": note})
            teacher = f"{self.lesson.title}, {recipe.teacher}"
            provenance = replace(provenance, data=data, teacher=teacher)
        return write_bundle(
            base,
            bag.head_of(linear, self.problem.labels),
            provenance,
            facts.out,
            multi_label=self.problem.multi_label,
            abstain=facts.abstain,
        )


def choose_unlabelled(texts: Sequence[str], problem: Problem, seed: int) -> list[str]:
    """At most MOST_UNLABELLED of the texts, without those of the rows. Raises DataError if none is left."""
    labelled = {text_key(row.texts) for row in problem.rows}
    left = [text for text in texts if text_key((text,)) not in labelled]
    if not left:
        raise DataError(
            "--unlabelled: all texts of this file are labelled already: give other texts"
        )
    drawn = np.random.default_rng(seed).permutation(len(left))[:MOST_UNLABELLED]
    return [left[i] for i in sorted(drawn.tolist())]


def embed(model: Model, texts: Sequence[str]) -> Floats:
    """(N, D) vectors of length 1; a repeated text is encoded once."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    vectors: Floats = model.encode(list(numbers))
    return vectors[[numbers[text] for text in texts]]
