"""The rules and the dashboard: well formed, and every series that they name is served."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from heedful.app.observability.metrics import MODEL_LABELS, Metrics
from tests.process import ROOT, output, tool

FOLDER = ROOT / "deploy/prometheus"
BOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/dashboards/heedful.json").read_text())
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
SERVED = {one.name + suffix for one in Metrics().collect() for suffix in SUFFIXES[one.type]}


def test_the_configurations_and_the_rules_are_well_formed(tmp_path: Path) -> None:
    """The rules' own tests hold."""
    promtool = partial(output, tool("promtool"), cwd=FOLDER)
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "--lint-fatal", "rules.yml")
    promtool("test", "rules", "rules_test.yml")
    config = yaml.safe_load((FOLDER / "kubernetes.yml").read_text())
    [job] = config["scrape_configs"]
    assert job["job_name"] == "heedful"
    relabeled = {part["target_label"] for part in job["relabel_configs"] if "target_label" in part}
    assert relabeled == {"namespace", "pod", "accelerator"}
    # Debian's promtool knows no Kubernetes.
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    (tmp_path / "kubernetes.yml").write_text(yaml.safe_dump(config))
    promtool("check", "config", str(tmp_path / "kubernetes.yml"))


def test_every_series_and_label_is_served() -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    for rule in RULES:
        named = set(re.findall(r"\bheedful[_:][\w:]+", rule["expr"]))
        assert named <= SERVED | recorded, rule
        assert named or "up{" in rule["expr"]
    shown = "\n".join(EXPRESSIONS)
    assert set(re.findall(r"\b(?:heedful|process)_\w+", shown)) <= SERVED
    labels = ", ".join(re.findall(r"by \(([^)]*)\)", shown)).split(", ")
    known = {label for family in Metrics().counts.families for label in family.labels}
    assert set(labels) <= known | {*MODEL_LABELS, "le"}
    families = [f for f in Metrics().collect() if f.name.startswith("heedful_")]
    assert len(families) > 10
    assert [f.name for f in families if not re.search(rf"\b{f.name}", shown)] == []
