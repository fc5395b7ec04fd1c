"""A bundle: a trained model in a folder. This file defines the format.

bundles/ms-san-sst2/
    card.json       describes the model (runtime.bundles.card), with the hashes of the other files and a
                    version that is the hash of the card
    encoder.onnx    ids (B, S), lengths (B), [heads (B, L)], [alpha ()], [pieces (B, L)],
                    [features (K, F)] -> embedding (B, D)
    explain.onnx    the same inputs and a boolean () per prior -> the encoder's intermediate values; reads
                    its weights from encoder.onnx (runtime.explain.graph); optional
    encoder.int8.onnx, explain.int8.onnx
                    these two graphs with int8 matrix products, for the CPU; both read their weights from
                    encoder.onnx; optional
    head.onnx       the sentences' embeddings -> logits (B, C); absent if the kind has no head
    vocab.txt       one word per line (text.vocab): an id is a word, S = L
    tokenizer.json  or this: Hugging Face's format, whose truncation is the limit (text.pieces)
    golden.npz      sentences with the vectors and answers of these files (runtime.bundles.golden); optional
    typical.npz     the region of the training sentences (runtime.bundles.typical); optional
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from heedful.runtime.bundles.card import (
    CARD,
    EXPLAIN,
    EXPLAIN_INT8,
    FORMAT,
    GOLDEN,
    TOKENIZER,
    TYPICAL,
    VOCAB,
    Card,
    CardContent,
)
from heedful.runtime.bundles.golden import Golden
from heedful.runtime.bundles.typical import Typical
from heedful.runtime.engine.graphs import check_graphs
from heedful.runtime.errors import BundleError
from heedful.runtime.explain.graph import open_checked
from heedful.text.pieces import Lexicon, Pieces
from heedful.text.vocab import Vocab
from heedful.text.whole_text import WholeText

C = TypeVar("C", bound=CardContent)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle: its card, vocabulary and files.

    `files` holds the checked contents, since the folder may be replaced at any time.
    """

    card: Card
    files: Mapping[str, bytes]
    vocab: Lexicon
    golden: Golden | None = None
    typical: Typical | None = None


def read(folder: Path) -> Bundle:
    """Read and check a bundle.

    Runs the graphs, but not the golden sentences. Raises BundleError, which names the bundle, the file and the reason.
    """
    bundle = decode(*read_files(folder))
    check_graphs(bundle.files, bundle.card, bundle.vocab)
    for name in (EXPLAIN, EXPLAIN_INT8):
        if name in bundle.files:
            open_checked(bundle.files, bundle.card, bundle.vocab, name)
    return bundle


def decode(card: Card, files: Mapping[str, bytes]) -> Bundle:
    """The bundle of the card's files. Opens no graph: LoadedModel checks those that it serves. Raises BundleError."""
    golden = typical = None
    file = TOKENIZER if card.pieces else VOCAB
    try:
        vocab: Lexicon
        if card.pieces:
            vocab = (WholeText if card.whole_text else Pieces).read(files[file])
        else:
            vocab = Vocab.read(files[file], card.composed)
        if (file := GOLDEN) in files:
            golden = Golden.read(files[file], card.files)
        if (file := TYPICAL) in files:
            typical = Typical.read(files[file], card.dimension)
    except ValueError as error:
        raise BundleError(card.name, file, str(error)) from error
    return Bundle(card, files, vocab, golden, typical)


def read_files(folder: Path) -> tuple[Card, dict[str, bytes]]:
    """The card and its files, whose hashes are checked. Runs no graph. Raises BundleError.

    `folder` may be a link: its name, or that of its target, must be the model's.
    """
    # All files come from the same bundle, even if the link is replaced meanwhile.
    target = folder.resolve()
    card = read_card(target, named=False)
    check_name(card, folder.absolute().name, target.name)
    files = {name: _bytes(target, name) for name in card.files}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != card.files[name]:
            raise BundleError(
                card.name, name, f"not the file that {CARD} names: copy the bundle again"
            )
    return card, files


def read_card(folder: Path, *, named: bool = True) -> Card:
    """Only the card. Unless `named`, the folder may have another name than the model.

    Raises BundleError.
    """
    try:
        fields = json.loads(_bytes(folder, CARD))
    except (ValueError, RecursionError) as error:
        raise BundleError(folder.name, CARD, f"not JSON: {error}") from error
    card = validate_card(Card, folder.name, fields)
    if named:
        check_name(card, folder.name)
    return card


def check_name(card: Card, *names: str) -> None:
    """Raise BundleError unless one of the folder's `names` is the model's."""
    if card.name not in names:
        reason = f"names the model {card.name!r}: the folder must have that name"
        raise BundleError(names[0], CARD, reason)


def validate_card(model: type[C], name: str, fields: object) -> C:
    """The card of the bundle `name`. Raises BundleError with the first error."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        message = f"{field}: {first['msg']}" if field else first["msg"]
        if (field, first["type"]) == ("format", "less_than_equal"):
            later = f"format {first['input']} is later than {FORMAT}"
            message = f"{later}, the latest known: upgrade heedful"
        raise BundleError(name, CARD, message) from error


def _bytes(folder: Path, file: str) -> bytes:
    if (folder / file).is_fifo():  # reading it would wait for ever
        raise BundleError(folder.name, file, "is no regular file")
    try:
        return (folder / file).read_bytes()
    except OSError as error:
        raise BundleError(folder.name, file, f"cannot be read: {error.strerror}") from error
