"""Configurations of records of before 2026-11-29, in today's fields."""

from collections.abc import Mapping
from typing import Any

from heedful.training.config import RunConfig

RENAMED = {
    "": {"start": "init_from"},
    "words": {"scale": "init_rms", "composed": "subword_rows", "composed_share": "subword_dropout"},
    "optimiser": {"average": "ema_decay"},
    "distillation": {"neighbourhood": "hard_batch_size"},
    "teacher": {"doubt": "min_teacher_label_prob"},
}
"""By section, former name -> name."""
GONE = {
    "optimiser": {"label_smoothing": 0.0},
    "distillation": {"relations": 10.0, "gram": 0.0},
}
"""By section, fields that are no more, with the value that left them without effect."""


def of_record(fields: Mapping[str, Any]) -> RunConfig:
    """The configuration that a record of any version holds, as it was valid then."""
    return RunConfig.model_validate(renamed(fields))


def renamed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run's configuration, whichever version wrote them."""
    fields = _section(config, "")
    for name in RENAMED:
        if name and isinstance(fields.get(name), dict):
            fields[name] = _section(fields[name], name)
    frozen = [*_frozen_before(fields), *fields.get("freeze", ())]
    return fields | ({"freeze": frozen} if frozen else {})


def _section(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    names, gone = RENAMED.get(name, {}), GONE.get(name, {})
    return {
        names.get(field, field): value
        for field, value in fields.items()
        if field not in gone or gone[field] != value
    }


def _frozen_before(fields: dict[str, Any]) -> list[str]:
    """What the four former ways froze, which are taken out of `fields`."""
    found = []
    words, encoder, transformer = (
        dict(fields.get(name) or {}) for name in ("words", "encoder", "transformer")
    )
    words_are_frozen, encoder_is_frozen = (one.pop("frozen", False) for one in (words, encoder))
    tuned, rank = transformer.pop("finetune", "all"), transformer.pop("rank", 0)
    if words_are_frozen or (encoder_is_frozen and not transformer):
        found.append("words")
    if tuned == "layers":
        found.append("pieces")
    if transformer.pop("frozen", False) or tuned == "none":
        found.append("transformer")
    if encoder_is_frozen:
        found.append("encoder")
    if tuned == "low-rank":
        transformer["lora_rank"] = rank
    for name, section in (("words", words), ("encoder", encoder), ("transformer", transformer)):
        if fields.get(name):
            fields[name] = section
    return found
