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
from heedful.runtime.bundles.card import ENCODER, GOLDEN, IMPORTED, TOKENIZER, Card, TrainingCard
from heedful.text.parse import Parser
from heedful.text.whole_text import WholeText
from heedful.training import teachers
from heedful.training.source_commit import source_commit

LEAST_COSINE = 0.95
"""Least cosine of a golden sentence's vector in int8 to that in float32."""


class Pooled(Encoder):
    """The pooled vector of a transformer, scaled to length 1 with `normalize`, as sentence-transformers gives it."""

    inputs = ("cls",)

    def __init__(self, dim: int, *, normalize: bool) -> None:
        super().__init__()
        self.dim, self.normalize = dim, normalize

    def forward(self, _x: Tensor, _lengths: Tensor, cls: Tensor) -> Tensor:
        """The words (B, L, dim) and their number are not read; cls (B, dim) -> (B, dim)."""
        return functional.normalize(cls, dim=-1) if self.normalize else cls


def import_encoder(name: str, out: Path, parser: Parser, *, int8: bool, command: str) -> Card:
    """Write the bundle `out` of the encoder `name`, as `teachers.folder` finds it, and return its card.

    Its vectors are equal to TOLERANCE to the encoder's; with `int8` there is also a graph of int8 products, which a
    CPU serves. Raises ConfigError, DataMissing, ExportError, BundleError.
    """
    check_replaceable(out)
    teacher = teachers.load(name)
    settings = teacher.settings
    teacher.model.set_attn_implementation("eager")
    embedding = PieceEmbedding(teacher.model, frozen=True, sentence=settings.pooling)
    pooled = Pooled(teacher.size, normalize=settings.normalize)
    model = SentenceEncoder(embedding, pooled).eval()
    try:
        lexicon = _lexicon(teachers.folder(name), settings)
    except ValueError as error:
        raise ExportError(f"{name}: {error}") from error
    encoder = encoder_graph(model)
    exact = ParityModel(model, None, ())
    parity = check(
        {"encoder": encoder}, exact, exact, len(lexicon), settings.longest - 2, settings.longest
    )
    files = {ENCODER: encoder, TOKENIZER: lexicon.text.encode()}
    place = teachers.folder(name)
    fields: dict[str, Any] = {
        "task": "embed",
        "kind": "embedding",
        "encoder": {
            "name": IMPORTED,
            "config": {
                "dim": teacher.size,
                "pooling": settings.pooling,
                "normalize": settings.normalize,
            },
            "parameters": 0,
            "paper": f"imported: {name}",
        },
        "dimension": teacher.size,
        "labels": (),
        "max_tokens": settings.longest - 2,
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
    bundle = Bundle(card_of(out.name, fields, files), files, lexicon)
    if int8:
        bundle = _in_int8(bundle, model, parser)
    content = golden(bundle, parser.parse).to_bytes()
    return write(out, bundle.card.fields(), {**bundle.files, GOLDEN: content})


def _in_int8(exact: Bundle, model: nn.Module, parser: Parser) -> Bundle:
    """The bundle with an int8 graph. Raises ExportError where a golden sentence's vector moves too far."""
    graphs = int8_files(exact.files[ENCODER], None, exact.card, exact.vocab, weight_keys(model))
    files, fields = (
        {**exact.files, **graphs.files},
        exact.card.fields() | {"int8": unmeasured(graphs)},
    )
    bundle = Bundle(card_of(exact.card.name, fields, files), files, exact.vocab)
    vectors = golden(exact, parser.parse).outputs["float32"].vectors
    cosines = (vectors * golden(bundle, parser.parse).outputs["int8"].vectors).sum(axis=1)
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
    fields["int8"] = unmeasured(graphs) | measured
    return replace(bundle, card=card_of(exact.card.name, fields, files))


def _lexicon(place: Path, settings: teachers.Settings) -> WholeText:
    """The encoder's tokenizer, which prepends the prompt and makes a text lower case where the settings say so.

    Raises ValueError.
    """
    try:
        tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"{place / 'tokenizer.json'} is no tokenizer: {error}") from error
    steps: list[Any] = [normalizers.Prepend(settings.prompt)] if settings.prompt else []
    steps += [normalizers.Lowercase()] if settings.lower else []
    if steps:
        original = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([*steps, *original])
    return WholeText(tokenizer, settings.longest)


def _licence(place: Path) -> str:
    """The licence in the header of the model's page."""
    page = place / "README.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    match = re.search(r"^license: *(\S+)", text, re.M)
    return match[1] if match else "not stated: see the page of the encoder"
