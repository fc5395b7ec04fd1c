"""`heedful repack`, for real: a bundle's words in 4 bits, in all its graphs, or as they were."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from heedful.cli import repack
from heedful.cli.local_model import open_folder
from heedful.cli.quantize import quantize
from heedful.export.errors import ExportError
from heedful.export.weight_storage import Int4Table, Int8Table, round_weights
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.text.arrays import Floats
from heedful.text.batch import Batch, collate
from tests.builders import BuiltParser
from tests.export.trained import trained

QUIET = Console(file=io.StringIO())
HEADS = np.array([1, 1, 1, 2, 3])
TEXTS = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9"]


def sentences(bundle: Path) -> Batch:
    vocab = read(bundle).vocab
    words = [text.split() for text in TEXTS]
    return collate([vocab.sentence(one, HEADS[: len(one)]) for one in words])


def vectors(bundle: Path, graph: str) -> Floats:
    feeds = encoder_feeds(read(bundle).card, sentences(bundle))
    return OrtSession(bundle / graph, "cpu", 1).run(feeds)


@pytest.mark.usefixtures("toys_may_lose")
def test_every_graph_computes_with_the_words_in_4_bits(
    bundle: Path, pipeline: BuiltParser, stsb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = str(pipeline.folder)
    quantize(bundle, None, data=stsb, parser=parser, console=QUIET)
    before = read(bundle)
    monkeypatch.setattr(repack, "MAX_LOSS", 1)
    card = repack.repack(bundle, data=stsb, parser=parser, console=QUIET)
    after = read(bundle)
    assert after.card == card
    changed = {name for name in before.files if before.files[name] != after.files[name]}
    assert changed == {ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8}
    assert len(after.files[ENCODER]) < len(before.files[ENCODER])
    rows = {(score.split, score.metric): score.rows for score in card.scores}
    assert rows["dev", "spearman"] == rows["test", "spearman"] == 30  # not the old one's

    plain, int8 = vectors(bundle, ENCODER), vectors(bundle, ENCODER_INT8)
    assert 0 < np.abs(plain - int8).max() < 0.1
    with open_folder(bundle, parser) as model:
        found = model.loaded.explain(TEXTS[0])
    assert found.tokens == [TEXTS[0].split()]


def test_a_bundle_whose_score_falls_or_whose_words_are_not_int8_is_left_as_it_was(
    bundle: Path, pipeline: BuiltParser, stsb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = str(pipeline.folder)

    def contents() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in bundle.iterdir()}

    before = contents()
    monkeypatch.setattr(repack, "MAX_LOSS", -1.0)  # no score can rise by as much
    with pytest.raises(ExportError, match="keeps its int8 words: in 4 bits its spearman on stsb"):
        repack.repack(bundle, data=stsb, parser=parser, console=QUIET)
    assert contents() == before
    monkeypatch.setattr(repack, "MAX_LOSS", 1.0)
    repack.repack(bundle, data=stsb, parser=parser, console=QUIET)

    toy = trained("embedding")
    model = toy.model.eval()
    round_weights(model)
    table = model.embedding
    assert isinstance(table, Int8Table)
    model.embedding = Int4Table(table.rows * table.scales)
    batch = sentences(bundle)
    with torch.no_grad():
        arrays = map(torch.from_numpy, (batch.ids, batch.lengths, batch.heads))
        expected = model(*arrays, torch.tensor(toy.alpha)).numpy()
    np.testing.assert_allclose(vectors(bundle, ENCODER), expected, atol=1e-5)

    before = contents()
    with pytest.raises(ExportError, match="ms-san-toy: its word table is not stored in int8"):
        repack.repack(bundle, data=stsb, parser=parser, console=QUIET)
    assert contents() == before
