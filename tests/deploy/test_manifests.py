"""The manifests for Kubernetes, plain and rendered by Helm's own Go code: valid for its schemas, and in step with the
service."""

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
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
from tests.process import ROOT

needs_helm = pytest.mark.skipif(
    not find_spec("helm_python"), reason="`make dev` installs helm-python-sdk"
)
FOLDER, CHART = ROOT / "deploy/kubernetes", ROOT / "deploy/helm/heedful"
SERVED = {route.path for router in (routes, status, v2) for route in router.routes}  # type: ignore[attr-defined]  # all are
VARIABLES = {environment_name(field) for field in Settings.model_fields}
Manifests = dict[str, dict[str, Any]]


def read(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def patched(before: Any, patch: Any) -> Any:
    """What kustomize makes of a patch: lists of things with names are merged by them."""
    if isinstance(before, dict) and isinstance(patch, dict):
        return {key: patched(before.get(key), patch.get(key)) for key in {**before, **patch}}
    if isinstance(before, list) and patch and "name" in patch[0]:
        named = {part["name"]: part for part in before}
        return list(patched(named, {part["name"]: part for part in patch}).values())
    return before if patch is None else patch


def plain(*, gpu: bool = False) -> Manifests:
    """By kind; the Deployment may be that of the overlay."""
    [base] = read("base/kustomization.yaml")
    manifests = {part["kind"]: part for file in base["resources"] for part in read(f"base/{file}")}
    if gpu:
        [overlay] = read("gpu/kustomization.yaml")
        [[patch]] = [read(f"gpu/{part['path']}") for part in overlay["patches"]]
        manifests["Deployment"] = patched(manifests["Deployment"], patch)
    return manifests


def of_kserve() -> Manifests:
    """The predictor as a Pod."""
    [service] = read("kserve.yaml")
    others = {"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget"}
    predictor = service["spec"]["predictor"].items()
    spec = {key: value for key, value in predictor if key not in others}
    meta = {"apiVersion": "v1", "kind": "Pod", "metadata": service["metadata"]}
    return {"Pod": {**meta, "spec": spec}}


def rendered(**values: Any) -> Manifests:
    """As `helm template green deploy/helm/heedful` has them."""
    import helm_python as helm

    with helm.Chart.load(CHART) as chart:
        files = chart.render(values, name="green", namespace="models")
    parts = [part for text in files.values() for part in yaml.safe_load_all(text) if part]
    return {part["kind"]: part for part in parts}


DIGEST = "sha256:" + "0" * 64
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example:5000/heedful", "digest": DIGEST},
    "imagePullSecrets": [{"name": "registry"}],
    "settings": {"truncate": True, "shutdown_timeout": 60, "aliases": "a=ms-san-embed"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "autoscaling": {"queueInputs": ""},
    "networkPolicy": {"enabled": False},
    "service": {"type": "NodePort", "port": 8080},
}
SOURCES: dict[str, Callable[[], Manifests]] = {
    "cpu": plain,
    "gpu": partial(plain, gpu=True),
    "kserve": of_kserve,
    "helm": rendered,
    "helm, gpu": partial(rendered, gpu={"enabled": True}),
    "helm, everything": partial(rendered, **EVERYTHING),
}
NAMES = [
    pytest.param(name, marks=[needs_helm] if name.startswith("helm") else []) for name in SOURCES
]


@cache
def manifests_of(name: str) -> Manifests:
    return SOURCES[name]()


def pod_of(manifests: Manifests) -> dict[str, Any]:
    whole = manifests.get("Pod") or manifests["Deployment"]["spec"]["template"]
    spec: dict[str, Any] = whole["spec"]
    return spec


def environment(pod: dict[str, Any]) -> dict[str, str]:
    return {part["name"]: part.get("value", "") for part in pod["containers"][0]["env"]}


@pytest.mark.parametrize("name", NAMES)
def test_manifests_are_valid_and_in_step_with_the_service(name: str) -> None:
    """A Service named heedful would set HEEDFUL_PORT: its variables do not reach the pod."""
    for manifest in manifests_of(name).values():
        kubernetes_validate.validate(manifest, "1.33", strict=True)
    pod = pod_of(manifests_of(name))
    [container], variables = pod["containers"], environment(pod)
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
    limits = container["resources"]["limits"]
    assert {"cpu", "memory"} <= set(limits)
    assert (limits.get("nvidia.com/gpu") == "1") == ("gpu" in name)
    assert (variables.get("HEEDFUL_DEVICE") == "cuda") == ("gpu" in name)


@pytest.mark.parametrize("name", NAMES[:2] + NAMES[3:])
def test_the_parts_find_each_other_and_scale_on_a_gauge_that_is_served(name: str) -> None:
    manifests = manifests_of(name)
    template = manifests["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    specs = {kind: manifest["spec"] for kind, manifest in manifests.items() if "spec" in manifest}
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert specs[kind]["selector"]["matchLabels"] == labels
    assert specs["Service"]["selector"] == labels
    if "NetworkPolicy" in specs:
        assert specs["NetworkPolicy"]["podSelector"]["matchLabels"] == labels
    for spread in template["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels
    scaler = specs["HorizontalPodAutoscaler"]
    assert scaler["scaleTargetRef"]["kind"] == "Deployment"
    assert scaler["scaleTargetRef"]["name"] == manifests["Deployment"]["metadata"]["name"]
    gauges = {family.name for family in Metrics().collect() if family.type == "gauge"}
    scaled = [metric["pods"] for metric in scaler["metrics"] if metric["type"] == "Pods"]
    assert len(scaled) == (name != "helm, everything")
    for pods in scaled:
        assert pods["metric"]["name"] in gauges
        most = float(pods["target"]["averageValue"])
        assert 0 < most < Settings.model_fields["max_queue"].default
    [port] = pod_of(manifests)["containers"][0]["ports"]
    assert specs["Service"]["ports"][0]["targetPort"] == port["name"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])


@needs_helm
def test_values_reach_helms_manifests() -> None:
    import helm_python as helm

    charts = [manifests_of(name) for name in SOURCES if name.startswith("helm")]
    images = [pod_of(chart)["containers"][0]["image"] for chart in charts]
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    named = f"{EVERYTHING['image']['repository']}@{DIGEST}"
    assert images == [f"heedful:{version}", f"heedful:{version}-gpu", named]
    plain, _, every = charts
    labels = every["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "green"  # two releases are apart
    variables = environment(pod_of(every))
    given = {name: variables[environment_name(name)] for name in EVERYTHING["settings"]}
    settings = Settings.model_validate(given, strict=False)
    assert (settings.truncate, settings.shutdown_timeout) == (True, 60)
    assert ("NetworkPolicy" in plain, "NetworkPolicy" in every) == (True, False)
    assert helm.lint(CHART)["errors"] == []
