"""The dashboard: every series that it asks for is served, and docker-compose provisions it."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from heedful.app.http.request_record import PUBLIC
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
    counts = Metrics().counts
    known = {
        label
        for families in (counts.counters, counts.gauges, counts.histograms)
        for family in families
        for label in family.labels
    }
    assert labels <= known | {*MODEL_LABELS, "le"}


def test_probes_and_scrapes_count_in_no_panel_and_no_rule() -> None:
    rules = (ROOT / "deploy/prometheus/rules.yml").read_text()
    left_out = set(re.findall(r'route!~"([^"]*)"', "\n".join([*EXPRESSIONS, rules])))
    assert left_out
    for pattern in left_out:
        assert [route for route in PUBLIC if not re.fullmatch(pattern, route)] == []
        assert not re.fullmatch(pattern, "/v2/models/{model}/infer")


def test_every_metric_of_the_service_is_shown() -> None:
    shown = " ".join(EXPRESSIONS)
    families = [f for f in Metrics().collect() if f.name.startswith("heedful_")]
    assert len(families) > 10
    assert [f.name for f in families if not re.search(rf"\b{f.name}", shown)] == []


def test_panels_neither_overlap_nor_share_an_id() -> None:
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)


def provisioned(name: str) -> Any:
    return yaml.safe_load((FOLDER / "provisioning" / name).read_text())


def test_compose_provisions_source_and_dashboard() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounts = dict(v.split(":")[:2] for v in compose["services"]["grafana"]["volumes"])
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    [source] = provisioned("datasources/prometheus.yml")["datasources"]
    host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()  # type: ignore[union-attr]  # no match is a failure
    assert compose["services"][host]["ports"] == [f"127.0.0.1:{port}:{port}"]
    used = {panel["datasource"]["uid"] for panel in BOARD["panels"]}
    assert used == {source["uid"]}
    [provider] = provisioned("dashboards/heedful.yml")["providers"]
    assert mounts["./deploy/grafana/dashboards"] == provider["options"]["path"]
