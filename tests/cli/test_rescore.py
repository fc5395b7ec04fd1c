"""A bundle's files are replaced by better ones; by worse ones only within the limit."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from heedful.cli import rescore
from heedful.cli.local_model import open_folder
from heedful.export.errors import ExportError
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import Card
from heedful.training import tasks
from heedful.training.evaluate import measure
from tests.builders import WORDS, BuiltParser, build_bundle


def test_a_score_may_rise_and_may_not_fall_by_more_than_the_limit(
    tmp_path: Path, pipeline: BuiltParser
) -> None:
    parser, data = str(pipeline.folder), tmp_path / "data"
    (data / "stsb").mkdir(parents=True)
    rng = np.random.default_rng(0)
    with (data / "stsb" / "dev.jsonl").open("w") as file:
        for score in range(30):
            a, b = (" ".join(rng.choice(WORDS, 5)) for _ in "ab")
            print(json.dumps({"a": a, "b": b, "score": score / 6}), file=file)

    def dev(folder: Path) -> float:
        with open_folder(folder, parser) as model:
            return measure(tasks.get("embed"), "dev", data, model)[0].value

    def put(new: Bundle, over: Bundle, max_loss: float) -> Card:
        return rescore.replace(
            over,
            new.card.fields(),
            new.model_files,
            parsers=(parser, parser),
            data=data,
            max_loss=max_loss,
            kept="stays:",
            console=Console(file=io.StringIO()),
        )

    for name, tree in (("with-trees", True), ("without", False)):
        build_bundle(tmp_path, pipeline, name=name, kind="embedding", task="embed", tree=tree)
    worse, better = map(read, sorted((tmp_path / "with-trees", tmp_path / "without"), key=dev))
    with pytest.raises(ExportError, match=f"{better.card.name} stays: its spearman .* falls by"):
        put(worse, better, 0.0)
    assert read(better.folder).card == better.card
    put(better, worse, 0.0)
    assert read(worse.folder).files == better.files
