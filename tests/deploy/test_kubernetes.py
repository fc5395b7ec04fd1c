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


def read(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def kustomization(folder: str) -> dict[str, Any]:
    [found] = read(f"{folder}/kustomization.yaml")
    return found


MANIFESTS = [one for file in kustomization("base")["resources"] for one in read(f"base/{file}")]


def patched(before: Any, patch: Any) -> Any:
    """What kustomize makes of a patch: lists of things with names are merged by them."""
    if isinstance(before, dict) and isinstance(patch, dict):
        return {key: patched(before.get(key), patch.get(key)) for key in {**before, **patch}}
    if isinstance(before, list) and patch and "name" in patch[0]:
        named = {one["name"]: one for one in before}
        return list(patched(named, {one["name"]: one for one in patch}).values())
    return before if patch is None else patch


def of_kind(kind: str) -> dict[str, Any]:
    [found] = [manifest for manifest in MANIFESTS if manifest["kind"] == kind]
    return found


POD: dict[str, Any] = of_kind("Deployment")["spec"]["template"]
CONTAINER: dict[str, Any] = POD["spec"]["containers"][0]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: m["kind"])
def test_it_is_valid(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_the_gpu_overlay_is_valid_and_asks_for_one_device() -> None:
    overlay = kustomization("gpu")
    assert overlay["resources"] == ["../base"]
    [[patch]] = [read(f"gpu/{one['path']}") for one in overlay["patches"]]
    made = patched(of_kind("Deployment"), patch)
    kubernetes_validate.validate(made, "1.33", strict=True)
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert env["HEEDFUL_DEVICE"] == "cuda"
    assert env["HEEDFUL_SHUTDOWN_TIMEOUT"]  # of the base
    assert set(env) <= {environment_name(field) for field in Settings.model_fields}


@pytest.mark.parametrize("folder", ["cpu", "gpu"])
def test_an_overlay_names_the_bases_image(folder: str) -> None:
    [image] = kustomization(folder)["images"]
    assert image["name"] == CONTAINER["image"].partition(":")[0]


def test_kserves_predictor_is_a_valid_pod_that_speaks_v2() -> None:
    [service] = read("kserve.yaml")
    assert (service["apiVersion"], service["kind"]) == (
        "serving.kserve.io/v1beta1",
        "InferenceService",
    )
    own = {"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget"}
    spec = {key: value for key, value in service["spec"]["predictor"].items() if key not in own}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": service["metadata"], "spec": spec}
    kubernetes_validate.validate(pod, "1.33", strict=True)
    [container] = spec["containers"]
    paths = {container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("readiness", "liveness")}
    assert paths == {"/v2/health/ready", "/v2/health/live"} <= {route.path for route in v2.routes}  # type: ignore[attr-defined]  # all are
    for key in ("resources", "securityContext", "lifecycle", "volumeMounts"):
        assert container[key] == CONTAINER[key]
    assert keeps_its_port(spec)


def test_a_wrong_field_would_be_found() -> None:
    broken = {**of_kind("Service"), "spec": {"prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.33", strict=True)


def test_the_parts_find_each_other() -> None:
    labels = POD["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert of_kind(kind)["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("Service")["spec"]["selector"] == labels
    assert of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    for spread in POD["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels
    target = of_kind("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == (
        "Deployment",
        of_kind("Deployment")["metadata"]["name"],
    )
    [port] = CONTAINER["ports"]
    assert of_kind("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert port["containerPort"] == Settings.model_fields["port"].default
    assert POD["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])


def test_the_variables_are_settings() -> None:
    known = {environment_name(field) for field in Settings.model_fields}
    assert {variable["name"] for variable in CONTAINER["env"]} <= known


def keeps_its_port(pod: dict[str, Any]) -> bool:
    """Whether the variables of a Service `heedful`, HEEDFUL_PORT among them, do not reach the pod."""
    [container] = pod["containers"]
    [port] = [one["value"] for one in container["env"] if one["name"] == "HEEDFUL_PORT"]
    return pod["enableServiceLinks"] is False and port == str(
        container["ports"][0]["containerPort"]
    )


def test_a_service_named_heedful_does_not_set_the_port() -> None:
    assert keeps_its_port(POD["spec"])


def test_the_probes_ask_routes_that_need_no_key() -> None:
    served = {route.path for router in (routes, status) for route in router.routes}  # type: ignore[attr-defined]  # all are
    paths = {
        p: CONTAINER[f"{p}Probe"]["httpGet"]["path"] for p in ("startup", "readiness", "liveness")
    }
    assert paths == {"startup": "/ready", "readiness": "/ready", "liveness": "/health"}
    assert set(paths.values()) <= served


def test_it_has_time_to_answer_what_is_in_hand() -> None:
    [timeout] = [
        float(v["value"]) for v in CONTAINER["env"] if v["name"] == "HEEDFUL_SHUTDOWN_TIMEOUT"
    ]
    _, pause = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert POD["spec"]["terminationGracePeriodSeconds"] >= timeout + FLUSH_TIMEOUT + float(pause)


def test_it_may_do_no_more_than_it_needs() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    inside = CONTAINER["securityContext"]
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert set(CONTAINER["resources"]["limits"]) == {"cpu", "memory"}


def test_it_scales_on_a_gauge_that_is_served() -> None:
    metrics = of_kind("HorizontalPodAutoscaler")["spec"]["metrics"]
    [pods] = [metric["pods"] for metric in metrics if metric["type"] == "Pods"]
    [gauge] = [f for f in Metrics().collect() if f.name == pods["metric"]["name"]]
    assert gauge.type == "gauge"
    most = float(pods["target"]["averageValue"])
    assert 0 < most < Settings.model_fields["max_queue"].default
