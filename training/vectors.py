"""Initial word vectors from several sources, reduced to one size and scale."""

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from heedful.text.arrays import Floats
from heedful.text.vocab import SPECIAL, Vocab
from heedful.training.checkpoint import VOCAB
from heedful.training.data_folder import PAGE, find, lines
from heedful.training.errors import ConfigError, DataError, DataMissing
from heedful.training.stored_weights import table

GRAPH = "encoder.onnx"
ENCODER = "config.json"
UNKNOWN_RANGE = 0.05
"""Words without a vector start uniform in +-0.05, as in DiSAN, and in DSA on SST (docs/models.md)."""


class VectorSource(Protocol):
    """Vectors by word."""

    def has(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(V,) whether each word has a vector."""

    def look_up(self, words: Sequence[str]) -> Floats:
        """(V, d) vectors; any values for a word without one."""


class Table:
    """Vectors by word, where several surface forms may share one."""

    def __init__(self, vectors: Floats, rows: Mapping[str, int]) -> None:
        self._vectors, self._rows = vectors, rows

    def has(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.fromiter((word in self._rows for word in words), np.bool_, len(words))

    def look_up(self, words: Sequence[str]) -> Floats:
        rows = np.fromiter((self._rows.get(word, 0) for word in words), np.int64, len(words))
        vectors: Floats = self._vectors[rows]
        return vectors

    @classmethod
    def wordbridge(cls, data: Path) -> "Table":
        """`vectors/wordbridge_300d_f16.npz` and its map of surface forms (running -> run).

        Raises DataMissing, DataError.
        """
        file = find(data, ("vectors/wordbridge_300d_f16.npz",), dataset="wordbridge")
        try:
            # Opened here, because numpy leaves a file open that is no archive.
            with file.open("rb") as opened, np.load(opened) as archive:
                words, vectors = archive["words"], archive["vecs"].astype(np.float32)
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                f"{file}: no archive of words and vecs: {error}; {PAGE} describes it"
            ) from error
        if len(words) != len(vectors):
            raise DataError(f"{file}: {len(words)} words and {len(vectors)} vectors: get it again")
        rows = {str(word): row for row, word in enumerate(words)}
        forms = find(data, ("vectors/surface_to_word.json",), dataset="wordbridge")
        try:
            for form, word in json.loads("\n".join(lines(forms))).items():
                rows.setdefault(form, rows[word])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{forms}: no map of surface forms to words of {file.name}: {error}; {PAGE} describes it"
            ) from error
        return cls(vectors, rows)

    @classmethod
    def glove(cls, path: Path) -> "Table":
        """A GloVe text file, gzipped or not. Raises DataError naming a bad line."""
        rows: dict[str, int] = {}
        vectors: list[Floats] = []
        for word, vector in glove_lines(path):
            if word.lower() not in rows:  # cased files list the commoner form first
                rows[word.lower()] = len(vectors)
                vectors.append(vector)
        return cls(np.stack(vectors), rows)

    @classmethod
    def bundle(cls, folder: Path) -> "Table":
        """The word vectors of a bundle, in int8 or in 4 bits (`export.weight_storage`). Raises DataError."""
        try:
            graph = onnx.load(folder / GRAPH).graph
        except DecodeError as error:
            raise DataError(
                f"{folder / GRAPH} is damaged: {error}: copy the bundle again"
            ) from error
        parts = {
            name.removeprefix("embedding.").removeprefix("table."): numpy_helper.to_array(tensor)
            for name, tensor in ((tensor.name, tensor) for tensor in graph.initializer)
            if name.startswith("embedding.") and not name.startswith("embedding.features.")
        }
        vectors = table(parts)
        if vectors is None:
            raise DataError(f"{folder} holds no table of word vectors: name another bundle")
        try:
            words = Vocab.read((folder / VOCAB).read_bytes()).words
        except (FileNotFoundError, ValueError) as error:
            raise DataError(f"{folder / VOCAB}: {error}: copy the bundle again") from error
        if len(words) != len(vectors):
            raise DataError(
                f"{folder}: {VOCAB} lists {len(words)} words, {GRAPH} has {len(vectors)} vectors: copy it again"
            )
        rows = {word: row for row, word in enumerate(words) if word not in SPECIAL}
        return cls(vectors, rows)


def glove_lines(path: Path) -> Iterator[tuple[str, Floats]]:
    """The word and the values of each line of GloVe's, word2vec's or fastText's text files.

    A few words of GloVe's largest file hold spaces, such as ". . .". The first line of word2vec's and fastText's files
    has the numbers of words and values, and fastText's lines may end with a space.

    Raises DataError naming a line whose values are no numbers, or not as many as the first line's; also where
    there is no line.
    """
    size = 0
    for number, text in enumerate(lines(path), 1):
        line = text.rstrip(" ")
        if number == 1 and re.fullmatch("[0-9]+ [0-9]+", line):
            continue
        size = size or line.count(" ")
        word, *values = line.rsplit(" ", size)
        *_, last = word.split(" ")
        if len(values) < size or (last != word and _is_number(last)):
            raise DataError(f"{path.name}:{number}: not {size} values, as the first line has")
        try:
            with np.errstate(over="ignore"):
                vector = np.array(values, np.float32)
        except ValueError as error:
            raise DataError(f"{path.name}:{number}: {error}: give a word and numbers") from error
        if not np.isfinite(vector).all():
            raise DataError(
                f"{path.name}:{number}: a value that is not finite: give float32 numbers"
            )
        yield word, vector
    if not size:
        raise DataError(f"{path.name} holds no vectors: give a word and its values on each line")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class EncodedWords:
    """Static vectors of a sentence encoder: each word encoded as a sentence."""

    def __init__(self, teacher: str, device: str) -> None:
        self._teacher, self._device = teacher, device

    def has(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.ones(len(words), np.bool_)

    def look_up(self, words: Sequence[str]) -> Floats:
        from heedful.training.teachers import load

        return load(self._teacher, self._device).vectors(words)


def source(name: str, data: Path, device: str = "cpu") -> VectorSource:
    """The source that a configuration names; an encoder runs on `device`. Raises DataMissing."""
    if name == "wordbridge":
        return Table.wordbridge(data)
    path = Path(name)
    if name in ("minilm", "mpnet") or (path / ENCODER).is_file():
        return EncodedWords(name, device)
    if (path / GRAPH).is_file():
        return Table.bundle(path)
    if not path.is_file():
        raise DataMissing(
            f"word vectors {name!r} are neither wordbridge, minilm, mpnet nor word2vec, nor the folder of a bundle or "
            "of a sentence encoder, nor a GloVe text file"
        )
    return Table.glove(path)


def frequent_words(name: str, count: int) -> tuple[list[str], int]:
    """The first `count` words, which are the most frequent, of a bundle or a GloVe file, and the size of a vector.

    Raises DataMissing, DataError.
    """
    path = Path(name)
    if (path / GRAPH).is_file():
        words = Vocab.read((path / VOCAB).read_bytes()).words[len(SPECIAL) :]
        return list(words[:count]), Table.bundle(path).look_up([words[0]]).shape[1]
    if not path.is_file():
        raise DataMissing(f"no word vectors {name}: name a bundle's folder or a GloVe text file")
    head = list(islice(glove_lines(path), count))
    return [word.lower() for word, _ in head], len(head[0][1])


def initial(
    vectors: Floats, known: npt.NDArray[np.bool_], *, dim: int, scale: float, seed: int
) -> torch.Tensor:
    """(V, d) vectors -> (V, dim) table: reduced by PCA where d is larger, and scaled to the root mean square
    length `scale`. Rows without a vector are uniform.

    Raises ConfigError where the source has fewer than `dim` values per word, too few words to find `dim` principal
    components, or zeros alone.
    """
    if vectors.shape[1] < dim:
        raise ConfigError(
            f"the word vectors have {vectors.shape[1]} values, fewer than words.dim = {dim}"
        )
    table = np.random.default_rng(seed).uniform(-UNKNOWN_RANGE, UNKNOWN_RANGE, (len(vectors), dim))
    rows = vectors[known]
    if not len(rows):
        return torch.from_numpy(table.astype(np.float32))
    if rows.shape[1] > dim:
        if len(rows) < dim:
            raise ConfigError(
                f"only {len(rows)} words have a vector, too few to reduce them to words.dim = {dim} values: give texts "
                f"of more words, or set words.dim to {vectors.shape[1]}, the vectors' own size"
            )
        rows = pca(rows, dim)
    length = np.sqrt((rows**2).sum(axis=1).mean())
    if not length:
        raise ConfigError("words.vectors: every word's vector is zero: name other vectors")
    table[known] = rows * (scale / length)
    return torch.from_numpy(table.astype(np.float32))


def pca(rows: Floats, dim: int) -> Floats:
    """(N, d) -> (N, dim): the rows centred and projected on their `dim` principal components."""
    from sklearn.decomposition import PCA

    projected: Floats = PCA(dim, svd_solver="covariance_eigh").fit_transform(rows)
    return projected
