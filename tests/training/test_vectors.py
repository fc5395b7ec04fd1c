"""Word vectors: of files, of bundles, of emoji's names, of a run's own texts, composed; and the table they begin."""

import gzip
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn
from torch.nn import functional

from heedful.export.run import read
from heedful.export.weight_storage import Int4Table, Int8Table
from heedful.models.composed_words import ComposedWords
from heedful.models.lama import LAMA
from heedful.models.registry import build
from heedful.text import composition
from heedful.text.vocab import Vocab
from heedful.training import checkpoint, composed, vectors, word2vec
from heedful.training.config import Paths, RunConfig
from heedful.training.emoji_vectors import NamedEmoji, new_emoji
from heedful.training.errors import ConfigError, DataError, DataMissing
from heedful.training.parses import Parsed
from heedful.training.prepare import start_context
from heedful.training.restore import restore
from tests.training.conftest import changed, train
from tests.writing import put

with_gensim = pytest.mark.skipif(
    importlib.util.find_spec("gensim") is None, reason="gensim has no wheel for this Python"
)


def test_wordbridge_by_word_and_by_surface_form(data: Path) -> None:
    table = vectors.source("wordbridge", data)
    words = ["movie", "movies", "good", "nothing"]
    found = table.look_up(words)
    assert table.has(words).tolist() == [True, True, True, False]
    np.testing.assert_array_equal(found[0], found[1])
    direct = table.look_up(["bad"])
    assert not np.array_equal(found[2], direct[0])  # a word's own vector wins over the map


NAMES = b"the 1 2\n. . . 3 4\nat name@domain.com 5 6\n"


@pytest.mark.parametrize(
    ("name", "content", "words", "vectors_of"),
    [
        ("glove.txt", b"the 1 2\nThe 3 4\ncat 5 6\n", ["the", "cat"], [[1, 2], [5, 6]]),
        ("wiki.vec", b"2 3\nthe 1 2 3 \ncat 5 6 7 \n", ["the", "cat"], [[1, 2, 3], [5, 6, 7]]),
        (
            *("glove.txt.gz", gzip.compress(NAMES, mtime=0)),
            *(["the", ". . .", "at name@domain.com"], [[1, 2], [3, 4], [5, 6]]),
        ),
    ],
)
def test_text_files_of_vectors(
    tmp_path: Path, name: str, content: bytes, words: list[str], vectors_of: list[list[int]]
) -> None:
    """GloVe's, of which a cased one lists the commoner form first, word2vec's and fastText's."""
    file = put(tmp_path, name, content)
    table = vectors.source(str(file), tmp_path)
    assert table.has([*words, "dog"]).tolist() == [True] * len(words) + [False]
    np.testing.assert_array_equal(table.look_up(words), vectors_of)
    head, size = vectors.frequent_words(str(file), 2)
    assert (head[0], len(head), size) == ("the", 2, len(vectors_of[0]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("the 1 2\ncat 5\n", r"glove\.txt:2: not 2 values"),
        ("the 1 2\nof 1 x\n", r"glove\.txt:2: .*'x'"),
        ("", "holds no vectors"),
        ("the 1 2\nof 1 nan\n", r"glove\.txt:2: a value that is not finite"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str, said: str) -> None:
    file = put(tmp_path, "glove.txt", content)
    with pytest.raises(DataError, match=said):
        vectors.source(str(file), tmp_path)
    with pytest.raises(DataError, match=said):
        vectors.frequent_words(str(file), 2)


def test_a_bundles_own_vectors_and_none_of_an_unknown_source(tmp_path: Path) -> None:
    words, size = vectors.frequent_words("bundles/ms-san-sst2", 100)
    table = vectors.source("bundles/ms-san-sst2", Path())
    assert (len(words), size) == (100, 300)
    assert table.has([*words, "<pad>", "qqqq"]).tolist() == [True] * 100 + [False] * 2
    with pytest.raises(DataMissing, match="wordbridge"):
        vectors.source("nowhere.txt", tmp_path)
    with pytest.raises(DataMissing, match=r"no word vectors nowhere\.txt"):
        vectors.frequent_words("nowhere.txt", 2)


@pytest.mark.parametrize("table", [Int8Table, Int4Table])
def test_a_bundles_vectors_are_those_that_it_computes_with(
    tmp_path: Path, table: type[nn.Module]
) -> None:
    stored = table(torch.randn(5, 6, generator=torch.manual_seed(0)))
    tensors = [
        numpy_helper.from_array(value.numpy(), f"embedding.{name}")
        for name, value in stored.named_buffers()
    ]

    def refused(said: str) -> None:
        with pytest.raises(DataError, match=said):
            vectors.source(str(tmp_path), Path())

    graph = tmp_path / vectors.GRAPH
    onnx.save(helper.make_model(helper.make_graph([], "encoder", [], [], tensors)), graph)
    Vocab(["good", "bad", "ugly"]).save(tmp_path / checkpoint.VOCAB)
    found = vectors.source(str(tmp_path), Path()).look_up(["good", "bad", "ugly"])
    np.testing.assert_allclose(found, stored(torch.tensor([[2, 3, 4]]))[0].numpy(), atol=1e-6)
    Vocab(["good", "bad"]).save(tmp_path / checkpoint.VOCAB)
    refused(r"vocab\.txt lists 4 words, encoder\.onnx has 5 vectors")
    (tmp_path / checkpoint.VOCAB).unlink()
    refused(r"vocab\.txt: .*: copy the bundle again")
    graph.write_bytes(graph.read_bytes()[:-7])
    refused(r"encoder\.onnx is damaged")
    onnx.save(helper.make_model(helper.make_graph([], "encoder", [], [])), graph)
    refused("holds no table of word vectors")


def test_initial_table_scale_and_the_rows_without_a_vector() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    known = np.arange(500) > 1
    table = vectors.initial(rows, known, dim=8, scale=3.0, seed=1).numpy()
    np.testing.assert_allclose((table[known] ** 2).sum(1).mean(), 9.0, rtol=1e-4)
    assert np.abs(table[~known]).max() <= vectors.UNKNOWN_RANGE


def test_a_wider_source_keeps_its_principal_components() -> None:
    rng = np.random.default_rng(0)
    # Rank three: three components lose nothing.
    low = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 10))
    rows = (low - low.mean(0)).astype(np.float32)
    table = vectors.initial(rows, np.ones(200, bool), dim=3, scale=1.0, seed=1).numpy()
    ratio = (rows @ rows.T) / (table @ table.T)
    np.testing.assert_allclose(ratio, np.median(ratio), rtol=1e-2)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.eye(2, 6), r"only 2 words have a vector, .* to words\.dim = 4 .*set words\.dim to 6"),
        (np.zeros((2, 4)), r"words\.vectors: every word's vector is zero"),
        (np.ones((2, 3)), r"words\.dim = 4"),
    ],
)
def test_vectors_that_make_no_table_are_refused(rows: np.ndarray, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        vectors.initial(rows.astype(np.float32), np.ones(2, bool), dim=4, scale=1, seed=1)


def test_an_emoji_has_the_mean_of_the_words_of_its_name_or_the_sources_vector() -> None:
    words = {"broken": 0, "heart": 1, "pouting": 2, "crying": 3, "👍": 4, "thumbs": 5}
    table = vectors.Table(np.eye(6, dtype=np.float32), words)
    source = NamedEmoji(table)
    read = ["💔", "❤", "😡", "😭", "broken", "👍"]  # of loudly, face and black there is no vector
    assert source.has([*read, "🍕", "é", "heartless"]).tolist() == [True] * 6 + [False] * 3
    expected = np.eye(6, dtype=np.float32)[[0, 1, 2, 3, 0, 4]]
    expected[0] = [0.5, 0.5, 0, 0, 0, 0]
    assert np.array_equal(source.look_up(read), expected)
    counts = Counter({"💔": 3, "😡": 2, "👍": 3, "🍕": 9, "heart": 9, "©": 9, "→": 9})
    assert new_emoji(Vocab(["heart", "👍"], 14336), counts, table, 3) == ["💔"]


def test_without_gensim_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)  # an import of it raises
    texts = Parsed({}, ["apple"] * 9, np.zeros(9, np.int16), np.array([0, 9]))
    with pytest.raises(ConfigError, match=r"word2vec needs gensim, .* Python 3\.13"):
        word2vec.train([texts], dim=3, seed=1)


def test_the_context_begins_with_the_mean_over_the_corpus_tokens() -> None:
    encoder = build("lama", {"dim": 3, "hidden": 2, "heads": 2})
    table = torch.randn(5, 3)
    ids = np.array([2, 2, 4, 1, 2])
    start_context(encoder, table, ids)
    assert isinstance(encoder, LAMA)
    assert encoder.context is not None
    expected = np.mean([table[i].numpy() for i in ids], axis=0)
    np.testing.assert_allclose(encoder.context.detach(), expected, rtol=1e-5)


@with_gensim
@pytest.mark.parametrize("encoder", ["lama", "lama-ctx"])
def test_lama_trains_on_its_own_vectors(config: RunConfig, paths: Paths, encoder: str) -> None:
    words = {"vectors": "word2vec", "dim": 6, "min_count": 1, "background_min_count": None}
    lama = {"name": encoder, "config": {"hidden": 4, "heads": 3}}
    train(changed(config, encoder=lama, words=words, epochs=1), paths)
    weights = checkpoint.best(paths.run)
    assert weights["sentence.embedding.weight"].shape[1] == 6
    assert "movie" in Vocab.read((paths.run / checkpoint.VOCAB).read_bytes()).words
    assert ("sentence.encoder.context" in weights) == (encoder == "lama")


ROWS = 4096
MISSPELT = {
    **{"wonderful": "wonderfull", "terrible": "terible", "adventure": "adventrue"},
    **{"character": "charakter", "beautiful": "beutiful", "screenplay": "screnplay"},
    "tedious": "tedios",
}


def features(*words: str) -> torch.Tensor:
    return torch.from_numpy(composition.matrix(words, ROWS))


def test_a_run_learns_with_composed_words_and_is_restored(config: RunConfig, paths: Paths) -> None:
    words = {"subword_rows": ROWS, "subword_dropout": 0.3}
    record = train(changed(config, words=words), paths)
    assert record["dev"]["value"] == 1.0
    run, cut = restore(paths.run), read(paths.run, words=3)
    assert isinstance(run.lexicon, Vocab)
    assert isinstance(cut.vocab, Vocab)
    assert run.lexicon.composed == ROWS
    assert isinstance(run.model.sentence.embedding, ComposedWords)
    assert cut.vocab.words == run.lexicon.words[:5]
    sixth, ids = features(run.lexicon.words[5]), torch.tensor([[2, -1]])
    assert torch.equal(cut.model.embedding(ids, sixth), run.model.sentence.embedding(ids, sixth))
    with pytest.raises(IndexError):
        cut.model.embedding(torch.tensor([[5]]), sixth)


def test_a_misspelling_is_nearest_to_its_word() -> None:
    torch.manual_seed(0)
    vocab = Vocab(MISSPELT, ROWS)
    table = nn.Embedding(len(vocab), 30, padding_idx=0, sparse=True)
    words = ComposedWords(table, rows=ROWS, signature=composition.SIGNATURE)
    composed.fit_features(words, vocab, seed=1)
    with torch.no_grad():
        found = words.compose(features(*MISSPELT.values()))
        cosines = functional.normalize(found) @ functional.normalize(table.weight[2:]).T
    assert cosines.argmax(1).tolist() == list(range(len(MISSPELT)))
