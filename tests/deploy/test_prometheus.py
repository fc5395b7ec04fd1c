"""The rules: promtool accepts them, their own tests hold, and every series they name is served."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.series import served
from tests.process import PATIENCE, tool

FOLDER = Path(__file__).parents[2] / "deploy/prometheus"


def promtool(*arguments: str) -> None:
    done = subprocess.run(
        [tool("promtool"), *arguments],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_and_its_rules_are_well_formed() -> None:
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "--lint-fatal", "rules.yml")


def test_the_job_for_kubernetes_is_well_formed_and_has_the_rules_names(tmp_path: Path) -> None:
    config = yaml.safe_load((FOLDER / "kubernetes.yml").read_text())
    [job] = config["scrape_configs"]
    assert job["job_name"] == "heedful"
    relabeled = {one["target_label"] for one in job["relabel_configs"] if "target_label" in one}
    assert relabeled == {"namespace", "pod", "accelerator"}
    [found] = job.pop("kubernetes_sd_configs")  # Debian's promtool knows no Kubernetes
    assert found == {"role": "pod"}
    file = tmp_path / "kubernetes.yml"
    file.write_text(yaml.safe_dump(config))
    promtool("check", "config", str(file))


def test_the_rules_own_tests_hold() -> None:
    promtool("test", "rules", "rules_test.yml")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_series_is_served_or_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        named = set(re.findall(r"\bheedful[_:][\w:]+", rule["expr"]))
        assert named <= served() | recorded, rule
        assert named or "up{" in rule["expr"]
