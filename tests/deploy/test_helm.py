"""The chart, linted and rendered by Helm's own Go code, gives what Kubernetes' schemas take and the service needs."""

from typing import Any

import kubernetes_validate
import pytest
import yaml

from heedful.app.settings import Settings
from tests.deploy.test_kubernetes import check_pod, environment
from tests.process import ROOT

helm = pytest.importorskip("helm_python", reason="`make dev` installs helm-python-sdk")
CHART = ROOT / "deploy/helm/heedful"
DIGEST = "sha256:" + "0" * 64
VALUES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "gpu": {"gpu": {"enabled": True}},
    "everything": {
        "image": {"repository": "registry.example:5000/heedful", "digest": DIGEST},
        "imagePullSecrets": [{"name": "registry"}],
        "settings": {"truncate": True, "shutdown_timeout": 60, "aliases": "a=ms-san-embed"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "autoscaling": {"queueInputs": ""},
        "networkPolicy": {"enabled": False},
        "service": {"type": "NodePort", "port": 8080},
    },
}


def rendered(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The manifests by kind, as `helm template green deploy/helm/heedful` has them."""
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values, name="green", namespace="models")
    made = [one for text in files.values() for one in yaml.safe_load_all(text) if one]
    return {one["kind"]: one for one in made}


@pytest.mark.parametrize("values", VALUES.values(), ids=list(VALUES))
def test_manifests_are_valid_and_in_step_with_the_service(values: dict[str, Any]) -> None:
    manifests = rendered(values)
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, "1.33", strict=True)
    check_pod(manifests["Deployment"]["spec"]["template"]["spec"])
    labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert manifests["Service"]["spec"]["selector"] == labels
    assert manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert labels["app.kubernetes.io/instance"] == "green"  # two releases are apart


def test_values_reach_the_manifests() -> None:
    plain, gpu, every = (rendered(values) for values in VALUES.values())
    pods = [one["Deployment"]["spec"]["template"]["spec"] for one in (plain, gpu, every)]
    images = [pod["containers"][0]["image"] for pod in pods]
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images == [
        *(f"heedful:{version}", f"heedful:{version}-gpu"),
        f"registry.example:5000/heedful@{DIGEST}",
    ]
    assert pods[1]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert environment(pods[1]["containers"][0])["HEEDFUL_DEVICE"] == "cuda"
    variables = environment(pods[2]["containers"][0])
    given = {
        name.removeprefix("HEEDFUL_").lower(): variables[name]
        for name in ("HEEDFUL_TRUNCATE", "HEEDFUL_SHUTDOWN_TIMEOUT", "HEEDFUL_ALIASES")
    }
    settings = Settings.model_validate(given, strict=False)
    assert (settings.truncate, settings.shutdown_timeout) == (True, 60)
    assert "NetworkPolicy" in plain
    assert "NetworkPolicy" not in every
    kinds = [m["type"] for m in every["HorizontalPodAutoscaler"]["spec"]["metrics"]]
    assert kinds == ["Resource"]


def test_helm_finds_no_fault() -> None:
    assert helm.lint(CHART)["errors"] == []
