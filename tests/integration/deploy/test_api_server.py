"""Manifests as a real API server takes them, with the CRD of Spark's operator: by a dry run that checks each field."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import declare
from reconciler.operate.deployments.pods import pod_checks
from tests.support.kubernetes.api_server import ApiServer, api_server, lacking
from tests.support.kubernetes.patterns import PATTERNS, made, objects
from tests.support.kubernetes.schemas import crd
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(bool(lacking()), reason=f"no API server can be built: {lacking()}"),
]
TAKEN = (200, 201)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("api")) as found:
        for name in ("anabranch", "mirrors"):
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            assert found.ask("/api/v1/namespaces", space, "POST")[0] in TAKEN
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, told = found.ask(definitions, crd(), "POST")
        assert status in TAKEN, told
        # The kind is there a moment after its definition.
        there = "/apis/spark.apache.org/v1/namespaces/anabranch/sparkapplications"
        eventually("the kind is known", lambda: found.ask(there)[0] == 200)
        yield found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_manifests_are_taken(pattern: str, server: ApiServer, tmp_path: Path) -> None:
    kinds = set()
    for one in objects(made(tmp_path, PATTERNS[pattern])):
        if one["kind"] == "Kustomization":
            continue
        status, told = server.dry_run(one)
        assert status in TAKEN, (one["kind"], told)
        assert (told["kind"], told["metadata"]["name"]) == (one["kind"], one["metadata"]["name"])
        kinds.add(one["kind"])
    assert {"SparkApplication", "ConfigMap", "ServiceAccount", "NetworkPolicy"} <= kinds


def test_a_field_that_is_misspelt_is_not(server: ApiServer, tmp_path: Path) -> None:
    for one in objects(made(tmp_path, PATTERNS["active-passive"])):
        if one["kind"] not in ("SparkApplication", "Deployment", "NetworkPolicy", "Service"):
            continue
        broken = copy.deepcopy(one)
        broken["spec"]["surprise"] = 1
        status, told = server.dry_run(broken)
        assert (status, "surprise" in str(told)) in ((400, True), (500, True)), (one["kind"], status, told)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_doctor_asks_a_real_cluster(server: ApiServer, tmp_path: Path) -> None:
    """What `kubectl` prints and what a quota counts, where the unit tests have a stand-in for both."""
    file = tmp_path / "topology.yaml"
    file.write_text(
        PATTERNS["active-passive"].replace(
            "        namespace: mirrors\n", "        namespace: mirrors\n        context: tests\n"
        )
    )
    environ = {**os.environ, "KUBECONFIG": str(server.kubeconfig(tmp_path, "tests"))}

    def found() -> dict[str, str]:
        checks = list(pod_checks(declare.load([file]), ["west"], environ))
        return {one.found: one.level for one in checks if one.what == "pods of dc2"}

    lacking = found()
    assert set(lacking.values()) == {"failure"}
    assert {f'secrets "{name}" not found' for name in ("kafka", "kafka-east", "serve-tls", "images")} <= set(lacking)
    keys = {
        "kafka": ("EAST_PASSWORD", "WEST_USER", "WEST_PASSWORD", "READ_TOKEN"),
        "kafka-east": ("ca.pem",),
        "kafka-west": ("ca.pem",),
        "serve-tls": ("tls.crt", "tls.key"),
        "serve-tokens": ("ops",),
        "images": (".dockerconfigjson",),
    }
    for name, names in keys.items():
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "data": dict.fromkeys(names, "eA=="),
        }
        assert server.ask("/api/v1/namespaces/mirrors/secrets", secret, "POST")[0] in TAKEN
    (said,) = found()
    assert said.endswith("in namespace mirrors, has its Secrets, and has room for its pods")

    quotas = "/api/v1/namespaces/mirrors/resourcequotas"
    hard = {"requests.memory": "4Gi", "limits.cpu": "8", "services": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}}
    assert server.ask(quotas, quota, "POST")[0] in TAKEN
    # No controller runs here that would write what is used.
    status = {**quota, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    assert server.ask(f"{quotas}/small/status", status, "PUT")[0] in TAKEN
    refused = eventually("the quota counts", lambda: [one for one in found() if "exceeded quota: small" in one])
    assert all("services" in one for one in refused)
    del hard["services"]
    status = {**quota, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    for path in (f"{quotas}/small", f"{quotas}/small/status"):
        assert server.ask(path, status, "PUT")[0] in TAKEN
    eventually("services are taken again", lambda: not any("exceeded quota" in one for one in found()))
    assert found() == {
        "ResourceQuota small leaves 4Gi of 4Gi requests.memory, and these pods need 6.5Gi": "failure",
        "ResourceQuota small counts limits.cpu, so each pod has to name it, and Deployment"
        " disaster-recovery-dc2-metrics does not": "failure",
    }
