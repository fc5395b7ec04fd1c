"""The dashboard: every series that it asks for is served, and docker-compose provisions it."""

import json
import re
from pathlib import Path
from typing import Any

from heedful.app.observability.metrics import MODEL_LABELS, Metrics
from tests.deploy.series import served

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/grafana"
BOARD: dict[str, Any] = json.loads((FOLDER / "dashboards/heedful.json").read_text())
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


def test_every_series_and_label_is_served() -> None:
    named = {name for e in EXPRESSIONS for name in re.findall(r"\b(?:heedful|process)_\w+", e)}
    assert named <= served()
    labels = {label for e in EXPRESSIONS for group in re.findall(r"by \(([^)]*)\)", e)
              for label in group.split(", ")}  # fmt: skip
    known = {label for family in Metrics().counts.families for label in family.labels}
    assert labels <= known | {*MODEL_LABELS, "le"}


def test_every_metric_of_the_service_is_shown() -> None:
    shown = " ".join(EXPRESSIONS)
    families = [f for f in Metrics().collect() if f.name.startswith("heedful_")]
    assert len(families) > 10
    assert [f.name for f in families if not re.search(rf"\b{f.name}", shown)] == []
