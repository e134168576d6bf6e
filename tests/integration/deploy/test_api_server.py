"""Manifests as a real API server takes them, with the CRD of Spark's operator: by a dry run that checks each field."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

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
