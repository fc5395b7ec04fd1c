"""docs/operations.md: its settings and metrics are the code's."""

import html

from heedful.app.observability.metrics import Metrics
from heedful.app.settings import Settings, environment_name
from tests.docs.examples import table
from tests.process import ROOT

PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")


def test_every_setting_is_in_its_table_with_default_and_description() -> None:
    rows = [[html.unescape(cell) for cell in row] for row in table(PAGE, "Settings")]
    assert rows == [
        [
            f"`{environment_name(name)}`",
            "" if field.default in (None, (), {}) else str(field.default),
            field.description,
        ]
        for name, field in Settings.model_fields.items()
    ]


def test_every_metric_is_in_its_table_with_its_type() -> None:
    named = {cells[0].strip("`"): cells[1] for cells in table(PAGE, "Metrics")}
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name: family.type
        for family in Metrics().collect()
        if family.name.startswith("heedful_")
    }
    assert named == served
