"""The manifests: valid for Kubernetes' own schemas, and in step with the service."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from heedful.app.observability.metrics import Metrics
from heedful.app.process.server import FLUSH_TIMEOUT
from heedful.app.routes.compat.kserve import router as v2
from heedful.app.routes.core import router as routes
from heedful.app.routes.status import router as status
from heedful.app.settings import Settings, environment_name

FOLDER = Path(__file__).parents[2] / "deploy/kubernetes"
SERVED = {route.path for router in (routes, status, v2) for route in router.routes}  # type: ignore[attr-defined]  # all are
VARIABLES = {environment_name(field) for field in Settings.model_fields}


def read(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


BASE = [
    one for file in read("base/kustomization.yaml")[0]["resources"] for one in read(f"base/{file}")
]
MANIFESTS: dict[str, dict[str, Any]] = {one["kind"]: one for one in BASE}


def patched(before: Any, patch: Any) -> Any:
    """What kustomize makes of a patch: lists of things with names are merged by them."""
    if isinstance(before, dict) and isinstance(patch, dict):
        return {key: patched(before.get(key), patch.get(key)) for key in {**before, **patch}}
    if isinstance(before, list) and patch and "name" in patch[0]:
        named = {one["name"]: one for one in before}
        return list(patched(named, {one["name"]: one for one in patch}).values())
    return before if patch is None else patch


def on_gpu() -> dict[str, Any]:
    """The Deployment of the overlay."""
    [overlay] = read("gpu/kustomization.yaml")
    [[patch]] = [read(f"gpu/{one['path']}") for one in overlay["patches"]]
    made: dict[str, Any] = patched(MANIFESTS["Deployment"], patch)
    return made


def of_kserve() -> dict[str, Any]:
    """The predictor as a Pod."""
    [service] = read("kserve.yaml")
    own = {"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget"}
    spec = {key: value for key, value in service["spec"]["predictor"].items() if key not in own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": service["metadata"], "spec": spec}


PODS: dict[str, dict[str, Any]] = {
    "cpu": MANIFESTS["Deployment"]["spec"]["template"]["spec"],
    "gpu": on_gpu()["spec"]["template"]["spec"],
    "kserve": of_kserve()["spec"],
}


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container["env"]}


@pytest.mark.parametrize("manifest", [*BASE, on_gpu(), of_kserve()], ids=lambda m: m["kind"])
def test_it_is_valid(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.33", strict=True)


@pytest.mark.parametrize("pod", PODS.values(), ids=list(PODS))
def test_a_pod_is_in_step_with_the_service(pod: dict[str, Any]) -> None:
    check_pod(pod)


def check_pod(pod: dict[str, Any]) -> None:
    """A Service named heedful would set HEEDFUL_PORT: its variables do not reach the pod."""
    [container] = pod["containers"]
    variables = environment(container)
    assert set(variables) <= VARIABLES
    assert pod["enableServiceLinks"] is False
    assert variables["HEEDFUL_PORT"] == str(container["ports"][0]["containerPort"])
    paths = {container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("readiness", "liveness")}
    assert paths <= SERVED
    timeout = float(variables["HEEDFUL_SHUTDOWN_TIMEOUT"])
    _, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] >= timeout + FLUSH_TIMEOUT + float(pause)
    assert pod["securityContext"]["runAsNonRoot"] is True
    inside = container["securityContext"]
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])


def test_the_gpu_overlay_asks_for_one_device() -> None:
    [container] = PODS["gpu"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert environment(container)["HEEDFUL_DEVICE"] == "cuda"


def test_the_parts_find_each_other() -> None:
    template = MANIFESTS["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert MANIFESTS[kind]["spec"]["selector"]["matchLabels"] == labels
    assert MANIFESTS["Service"]["spec"]["selector"] == labels
    assert MANIFESTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    for spread in template["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels
    target = MANIFESTS["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == (
        *("Deployment", MANIFESTS["Deployment"]["metadata"]["name"]),
    )
    [port] = PODS["cpu"]["containers"][0]["ports"]
    assert MANIFESTS["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])


def test_it_scales_on_a_gauge_that_is_served() -> None:
    metrics = MANIFESTS["HorizontalPodAutoscaler"]["spec"]["metrics"]
    [pods] = [metric["pods"] for metric in metrics if metric["type"] == "Pods"]
    [gauge] = [f for f in Metrics().collect() if f.name == pods["metric"]["name"]]
    assert gauge.type == "gauge"
    most = float(pods["target"]["averageValue"])
    assert 0 < most < Settings.model_fields["max_queue"].default
