"""A sentence encoder of transformers or sentence-transformers -> a bundle that gives its vectors."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, normalizers
from torch import Tensor, nn
from torch.nn import functional

from heedful.export.bundle_writer import card_of, check_replaceable, write
from heedful.export.errors import ExportError
from heedful.export.golden import golden
from heedful.export.int8_files import int8_files, unmeasured
from heedful.export.onnx import encoder_graph
from heedful.export.parity import TOLERANCE, ParityModel, check
from heedful.export.weight_storage import weight_keys
from heedful.models.pieces import PieceEmbedding
from heedful.models.sentence import Encoder, SentenceEncoder
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import (
    ENCODER,
    GOLDEN,
    TOKENIZER,
    Card,
    TrainingCard,
)
from heedful.text.parse import Parser
from heedful.text.whole_text import WholeText
from heedful.training import teachers
from heedful.training.source_commit import source_commit

LEAST_COSINE = 0.95
"""Between a golden sentence's vector in int8 and in float32."""


class Pooled(Encoder):
    """The sentence vector of a transformer as it is: what sentence-transformers serves.

    Gives the vector that its pieces are pooled to, scaled to length 1 with `normalize`.
    """

    inputs = ("cls",)

    def __init__(self, dim: int, *, normalize: bool) -> None:
        super().__init__()
        self.dim, self.normalize = dim, normalize

    def forward(self, _x: Tensor, _lengths: Tensor, cls: Tensor) -> Tensor:
        """The words (B, L, dim) and their number are not read; cls (B, dim) -> (B, dim)."""
        return functional.normalize(cls, dim=-1) if self.normalize else cls


def import_encoder(name: str, out: Path, parser: Parser, *, int8: bool, command: str) -> Card:
    """Write the bundle `out` of the encoder `name`, as `teachers.folder` finds it, and return its card.

    Its vectors are equal to TOLERANCE to the encoder's; with `int8` there is a graph of int8 products beside, which a
    CPU serves. Raises ConfigError, DataMissing, ExportError, BundleError.
    """
    check_replaceable(out)
    teacher = teachers.load(name)
    how = teacher.settings
    teacher.model.set_attn_implementation("eager")
    embedding = PieceEmbedding(teacher.model, frozen=True, sentence=how.pooling)
    pooled = Pooled(teacher.size, normalize=how.normalize)
    model = SentenceEncoder(embedding, pooled).eval()
    try:
        lexicon = _lexicon(teachers.folder(name), how)
    except ValueError as error:
        raise ExportError(f"{name}: {error}") from error
    encoder = encoder_graph(model)
    exact = ParityModel(model, None, ())
    parity = check({"encoder": encoder}, exact, exact, len(lexicon), how.longest - 2, how.longest)
    files = {ENCODER: encoder, TOKENIZER: lexicon.text.encode()}
    place = teachers.folder(name)
    fields: dict[str, Any] = {
        "task": "embed",
        "kind": "embedding",
        "encoder": {
            "name": "transformer",
            "config": {"dim": teacher.size, "pooling": how.pooling, "normalize": how.normalize},
            "parameters": 0,
            "paper": f"imported: {name}",
        },
        "dimension": teacher.size,
        "labels": (),
        "max_tokens": how.longest - 2,
        "tree": False,
        "cost": "quadratic",
        "alpha": None,
        "whole_text": True,
        "parser": {"name": parser.name, "fingerprint": parser.fingerprint},
        "parity": {
            "max_abs_error": parity.error,
            "tolerance": TOLERANCE,
            "cases": parity.cases,
            "against": "torch with the encoder's own weights",
        },
        "scores": (),
        "training": TrainingCard(
            data=(),
            vectors="",
            seed=0,
            epochs=0,
            config="",
            command=command,
            commit=source_commit(),
            start=name,
        ),
        "licence": _licence(place),
    }
    bundle = Bundle(out, card_of(out.name, fields, files), files, lexicon)
    if int8:
        bundle = _in_int8(bundle, model, parser)
    content = golden(bundle, parser.parse).to_bytes()
    return write(out, bundle.card.fields(), {**bundle.files, GOLDEN: content})


def _in_int8(exact: Bundle, model: nn.Module, parser: Parser) -> Bundle:
    """With graphs whose products are int8. Raises ExportError where a golden sentence's vector moves too far."""
    made = int8_files(exact.files[ENCODER], None, exact.card, exact.vocab, weight_keys(model))
    files, fields = {**exact.files, **made.files}, exact.card.fields() | {"int8": unmeasured(made)}
    bundle = Bundle(exact.folder, card_of(exact.card.name, fields, files), files, exact.vocab)
    before = golden(exact, parser.parse).outputs["float32"].vectors
    cosines = (before * golden(bundle, parser.parse).outputs["int8"].vectors).sum(axis=1)
    if not cosines.min() >= LEAST_COSINE:
        raise ExportError(
            f"{exact.card.name}: in int8 the lowest cosine of a golden sentence's vector to the encoder's is "
            f"{cosines.min():.3f} (at least {LEAST_COSINE}): leave --int8 out"
        )
    measured = {
        "dataset": "golden sentences",
        "metric": "mean cosine",
        "float32": 1.0,
        "int8": float(cosines.mean()),
        "cosine": float(cosines.min()),
        "sentences": len(cosines),
    }
    fields["int8"] = unmeasured(made) | measured
    return replace(bundle, card=card_of(exact.card.name, fields, files))


def _lexicon(place: Path, how: teachers.Settings) -> WholeText:
    """Its tokenizer, which puts the prompt before a text and makes it lower case where the encoder's files say so.

    Raises ValueError.
    """
    try:
        tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"{place / 'tokenizer.json'} is no tokenizer: {error}") from error
    before: list[Any] = [normalizers.Prepend(how.prompt)] if how.prompt else []
    before += [normalizers.Lowercase()] if how.lower else []
    if before:
        own = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([*before, *own])
    return WholeText(tokenizer, how.longest)


def _licence(place: Path) -> str:
    """What the model's own page says, in the lines before its text."""
    page = place / "README.md"
    found = (
        re.search(r"^license: *(\S+)", page.read_text(encoding="utf-8"), re.M)
        if page.is_file()
        else None
    )
    return found[1] if found else "not stated: see the page of the encoder"
