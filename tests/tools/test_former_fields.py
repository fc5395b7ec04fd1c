"""Configurations in the records of other versions."""

from pathlib import Path
from typing import Any

import pytest

from tools.former_fields import of_record


@pytest.mark.parametrize(
    ("before", "frozen"),
    [
        ({}, ()),
        ({"words": {"frozen": True}}, ("words",)),
        ({"encoder": {"name": "ms-san", "frozen": True}}, ("words", "encoder")),
        ({"transformer": {"finetune": "layers"}}, ("pieces",)),
        ({"transformer": {"finetune": "none"}}, ("transformer",)),
        (
            {
                "encoder": {"name": "ms-san-bert", "frozen": True},
                "transformer": {"finetune": "low-rank", "rank": 8, "frozen": True},
            },
            ("transformer", "encoder"),
        ),
    ],
)
def test_a_record_of_another_version_is_read(
    before: dict[str, Any], frozen: tuple[str, ...]
) -> None:
    fields = {
        "task": "sst2",
        "licence": "MIT",
        "start": "runs/first",
        "encoder": {"name": "ms-san"},
        "optimiser": {"average": 0.9, "label_smoothing": 0.0},
        "teacher": {"run": "runs/teacher", "doubt": 0.2},
        "distillation": {"neighbourhood": 3, "relations": 10.0},
    }
    read = of_record(fields | before)
    assert read.freeze == frozen
    assert read.init_from == Path("runs/first")
    assert read.optimiser.ema_decay == 0.9
    assert read.distillation.hard_batch_size == 3
    assert read.teacher is not None
    assert read.teacher.min_teacher_label_prob == 0.2
    if read.transformer:
        assert read.transformer.lora_rank == (8 if "rank" in before["transformer"] else 0)
    assert of_record(read.model_dump(mode="json")) == read
