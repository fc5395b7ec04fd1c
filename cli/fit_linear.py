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
from heedful.text.parse import ParseJob, Parser
from heedful.text.pieces import Lexicon
from heedful.text.plain import plain_word
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training import teachers
from heedful.training.assess import HeldOut, Split, encoder_splits, held_out, splits
from heedful.training.bag import terms, word_keys
from heedful.training.config import Device
from heedful.training.errors import ConfigError, DataError
from heedful.training.labelled_texts import same
from heedful.training.linear import STRENGTHS, ClassWeight, Linear, Recipe, Texts, recipes
from heedful.training.pseudo_labels import FineTunedTeacher, FrozenTeacher, Lesson

MOST_UNLABELLED = 4000
"""Texts without labels that are learned from; of more, so many are drawn at random."""
DECIDING = 12
"""Words listed for each class."""


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """U texts without labels, none of which is a row's, and who labels them: the frozen teacher and maybe another."""

    texts: Sequence[str]
    teacher: str
    """As `teachers.load` knows it."""
    frozen: Floats
    """(N + U, E) the teacher's vectors of length 1, of the N rows and of these texts."""
    fine_tune: int | None
    """The seed to fine-tune the teacher with, if that shall label them too."""
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
    """Rows that are longer than the base bundle reads: what comes later is left out, of their words too."""

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
        """Tokenize and embed the rows, and the texts without labels, these also with the teacher.

        `fine_tune` as in `Unlabelled`. Raises ConfigError for a base that `fit` made and that reads words,
        StartupError, BundleError, ParserError, DataMissing.
        """
        texts = [*(row.texts[0] for row in problem.rows), *unlabelled]
        read = bundle.read(base)
        if bag.reads_words(read):
            raise ConfigError(
                f"--base: {read.card.name} was made by `heedful fit` and reads words already: name the bundle that it "
                f"was made from ({read.card.training.vectors})"
            )
        jobs = [ParseJob(text, read.card.max_tokens, False) for text in texts]
        whole = Parser.load(parser).parse(jobs)
        parses = [parse.first(read.vocab.fitting(parse.tokens)) for parse in whole]
        tokens = [parse.tokens for parse in parses]
        with load(base, parser=parser, device="cpu") as model:
            vectors = embed(model, texts)
        more = None
        if unlabelled:
            frozen = teachers.load(teacher, device).unit_vectors(texts)
            more = Unlabelled(unlabelled, teacher, frozen, fine_tune, device)
        truncated = sum(parse.cut for parse in parses[: len(problem.rows)])
        return replace(cls.of(problem, read, tokens, vectors, more), truncated=truncated)

    @classmethod
    def of(
        cls,
        problem: Problem,
        base: bundle.Bundle,
        tokens: Sequence[tuple[str, ...]],
        vectors: Floats,
        more: Unlabelled | None = None,
    ) -> "LinearFit":
        """From the tokens and the base's vectors (N + U, D) of length 1 of the rows, then of the unlabelled texts."""
        lexicon = base.vocab
        if isinstance(lexicon, Vocab) and not lexicon.composed:
            words = dict.fromkeys(plain_word(token).lower() for row in tokens for token in row)
            new = [word for word in words if word not in lexicon and word.split() == [word]]
            lexicon = Vocab([*lexicon.words[len(SPECIAL) :], *new])
        sentences = [lexicon.sentence(row, np.arange(len(row))) for row in tokens]
        texts = Texts([word_keys(one, len(lexicon)) for one in sentences], vectors)
        count = len(problem.rows)
        rows = texts[np.arange(count)]
        lesson = None
        if more:
            unlabelled = texts[np.arange(count, len(texts))]
            of_rows = Texts(rows.keys, more.frozen[:count])
            frozen = FrozenTeacher(of_rows, Texts(unlabelled.keys, more.frozen[count:]))
            tuned = None
            if more.fine_tune is not None:
                own = [row.texts[0] for row in problem.rows]
                tuned = FineTunedTeacher(own, more.texts, more.fine_tune, more.teacher, more.device)
            lesson = Lesson(unlabelled, frozen, tuned, teachers.title(more.teacher))
        return cls(problem, base, lexicon, tokens[:count], sentences[:count], rows, lesson)

    def candidates(
        self, parts: Sequence[Split], class_weight: ClassWeight, processes: int = 1
    ) -> list[Candidate]:
        """Each held out on `parts`, of many rows the pupils of a fine-tuned teacher on one.

        Fine-tuned teachers learn in `processes` processes.
        """
        problem = self.problem
        found = []
        teachers = self.lesson.teachers if self.lesson else {}
        for recipe in recipes(class_weight, multi_label=problem.multi_label, teachers=teachers):
            started = time.monotonic()
            of = parts
            if self.lesson and self.lesson.fine_tuned and recipe.teacher == "fine-tuned":
                of = encoder_splits(parts)
                rows = [*(part.train for part in of), np.arange(len(problem.rows))]
                self.lesson.fine_tuned.prepare(recipe, rows, problem.targets, processes)
            held = self._held_out(recipe, of)
            name = f"{recipe.name}, C {recipe.strength:g}"
            seconds = time.monotonic() - started
            found.append(Candidate(name, held, seconds, partial(self.write, recipe), recipe))
        return found

    def references(
        self, parts: Sequence[Split], class_weight: ClassWeight
    ) -> list[tuple[str, HeldOut]]:
        """What logistic regression on the teacher's vectors alone answers, which no bundle holds."""
        if self.lesson is None:
            return []
        as_teacher_reads = replace(self, texts=self.lesson.frozen.rows)
        found = []
        for strength in STRENGTHS:
            recipe = Recipe(False, True, strength, class_weight, self.problem.multi_label)
            held = as_teacher_reads._held_out(recipe, parts)
            found.append((f"no candidate: {self.lesson.title} + LR, C {strength:g}", held))
        return found

    def every_row(self, recipe: Recipe, seed: int) -> HeldOut:
        """Answers for every row, by models that did not see it."""
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
            both = [*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))]
            for bucket, name in zip((terms(keys) % buckets).tolist(), both, strict=False):
                if all(map(_holds_a_letter, name.split())):
                    names.setdefault(bucket, name.lower())
        weights = linear.words - linear.words.mean(axis=1, keepdims=True)
        features = linear.bag.features(self.texts.keys)
        found: dict[str, list[str]] = {}
        for number, label in enumerate(self.problem.labels):
            rows = np.flatnonzero(self.problem.targets[:, number])
            raised = np.asarray(features[rows].mean(axis=0)).ravel() * weights[:, number]
            raising = (i for i in np.argsort(-raised).tolist() if i in names and raised[i] > 0)
            found[label] = [names[bucket] for bucket in itertools.islice(raising, DECIDING)]
        return found

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
            attach = bag.with_words if recipe.vectors else bag.words_alone
            base = attach(base, self.lexicon, linear)
            bag.check(base, linear, self.sentences)
        made = facts.made
        if recipe.teacher and self.lesson:
            note = f"{made.data.note}, and {len(self.lesson.unlabelled)} texts without labels"
            data = made.data.model_copy(update={"note": note})
            made = replace(made, data=data, teacher=f"{self.lesson.title}, {recipe.teacher}")
        return write_bundle(
            base,
            bag.head_of(linear, self.problem.labels),
            made,
            facts.out,
            multi_label=self.problem.multi_label,
            abstain=facts.abstain,
        )


def choose_unlabelled(texts: Sequence[str], problem: Problem, seed: int) -> list[str]:
    """At most MOST_UNLABELLED of the texts, none of which is a row's. Raises DataError if none is left."""
    labelled = {same(row.texts) for row in problem.rows}
    left = [text for text in texts if same((text,)) not in labelled]
    if not left:
        raise DataError(
            "--unlabelled: the file holds no text that is not labelled already: give other texts"
        )
    drawn = np.random.default_rng(seed).permutation(len(left))[:MOST_UNLABELLED]
    return [left[i] for i in sorted(drawn.tolist())]


def _holds_a_letter(word: str) -> bool:
    """Or a digit: full stops and commas decide nothing that a reader could use."""
    return any(character.isalnum() for character in word)


def embed(model: Model, texts: Sequence[str]) -> Floats:
    """(N, D) vectors of length 1; each text once."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    vectors: Floats = model.encode(list(places))
    return vectors[[places[text] for text in texts]]
