"""Candidates of `fit` that train an encoder, in a temporary folder."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from heedful.cli.fit_candidate import BundleFacts, Candidate, Problem, answers
from heedful.export import run as runs
from heedful.export.bundle import TrainedModel, export_bundle
from heedful.export.bundle_writer import write
from heedful.runtime.bundles.card import Card
from heedful.text.arrays import Doubles
from heedful.training import fit, vectors
from heedful.training.assess import Split, encoder_splits, held_out
from heedful.training.config import Device, Paths
from heedful.training.loop import train


@dataclass(frozen=True, slots=True)
class TunedEncoder:
    """An encoder of this name, trained from word vectors."""

    problem: Problem
    file: Path
    encoder: str
    word_vectors: str
    parser: str
    seed: int
    console: Console
    device: Device = "cpu"

    def candidate(self, parts: Sequence[Split]) -> Candidate:
        """Train without each part, with a tenth of the rows for dev, and answer the part; of many rows one part alone.

        Raises DataError, DataMissing.
        """
        started = time.monotonic()
        best_epochs: list[int] = []

        def train_and_answer(part: Split) -> Doubles:
            with tempfile.TemporaryDirectory() as folder:
                trained, epochs = self.train(Path(folder), set(part.held.tolist()), fit.EPOCHS)
                best_epochs.append(epochs)
                export_bundle(trained, Path(folder) / "tuned")
                rows = [self.problem.rows[i] for i in part.held]
                return answers(Path(folder) / "tuned", self.parser, rows)

        held = held_out(encoder_splits(parts), self.problem.targets, train_and_answer)
        epochs = max(1, round(float(np.median(best_epochs))))
        name = f"{self.encoder} trained from word vectors ({epochs} epochs)"
        return Candidate(name, held, time.monotonic() - started, partial(self.write, epochs))

    def train(self, folder: Path, held: set[int] | None, epochs: int) -> tuple[TrainedModel, int]:
        """The model, and its best epoch."""
        words, size = vectors.frequent_words(self.word_vectors, fit.COMMON_WORDS)
        rows = self.problem.rows
        task = fit.make_task(rows, self.file, words=words, seed=self.seed, held=held)
        config = fit.make_config(
            task,
            encoder=self.encoder,
            word_vectors=self.word_vectors,
            size=size,
            seed=self.seed,
            epochs=epochs,
            device=self.device,
        )
        paths = Paths(folder / "run", folder, self.parser, folder / "parses", self.file)
        record = train(config, paths, resume=False, console=self.console, task=task)
        return runs.read(folder / "run"), int(record["epochs"])

    def write(self, epochs: int, facts: BundleFacts) -> Card:
        """Train on all rows for so many epochs and write the bundle."""
        with tempfile.TemporaryDirectory() as folder:
            trained, _ = self.train(Path(folder), None, epochs)
            assert trained.head is not None
            *_, last = trained.head.modules()
            assert isinstance(last, torch.nn.Linear)
            with torch.no_grad():
                last.weight.div_(facts.temperature)
                last.bias.div_(facts.temperature)
            training = trained.training.model_copy(
                update={"command": facts.provenance.command, "data": (facts.provenance.data,)}
            )
            bundle = Path(folder) / facts.out.name
            card = export_bundle(
                replace(trained, training=training, scores=facts.provenance.scores), bundle
            )
            fields = {**card.fields(), "abstain": facts.abstain}
            return write(facts.out, fields, {name: bundle / name for name in card.files})
