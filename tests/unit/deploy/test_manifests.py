"""Manifests of the four patterns, as agreed, and as the API server and Spark's operator would take them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.operate.deployments.rendering import as_one
from tests.support.kubernetes.patterns import PATTERNS, made, objects
from tests.support.kubernetes.schemas import GOLDEN, check, spark_application

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("pattern", PATTERNS)
def test_manifests_are_those_that_were_agreed(pattern: str, tmp_path: Path) -> None:
    text = PATTERNS[pattern]
    found = made(tmp_path, text)
    listed = {f"{datacenter}/{name}" for datacenter, files in found.items() for name in files}
    told = "".join(f"# {name}\n" for name in sorted(listed))
    told += "".join(f"# {line}\n" if line else "#\n" for line in text.splitlines()) + as_one(found)
    golden = GOLDEN / f"{pattern}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(told)
    assert told == golden.read_text()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_object_is_one_that_the_api_server_takes(pattern: str, tmp_path: Path) -> None:
    found = list(objects(made(tmp_path, PATTERNS[pattern])))
    assert {"SparkApplication", "ConfigMap", "ServiceAccount", "NetworkPolicy", "Kustomization"} <= {
        one["kind"] for one in found
    }
    for one in found:
        check(one)


def test_a_misspelt_field_is_not_taken(tmp_path: Path) -> None:
    """The schemas can tell: else the test above shows nothing."""
    for one in objects(made(tmp_path, PATTERNS["active-passive"])):
        if one["kind"] == "Kustomization":
            continue
        for path in (["surprise"], ["metadata", "lables"], ["spec", "surprise"]):
            if path[0] in one or len(path) == 1:
                broken = json.loads(json.dumps(one))
                inner = broken
                for key in path[:-1]:
                    inner = inner[key]
                inner[path[-1]] = 1
                with pytest.raises(Exception, match=path[-1]):
                    check(broken)
    (application,) = [
        one for one in objects(made(tmp_path, PATTERNS["fan-out"])) if "driverArgs" in one.get("spec", ())
    ][:1]
    application["spec"]["applicationTolerations"]["restartConfig"]["restartPolicy"] = "Allways"
    assert not spark_application().is_valid(application)


def test_files_are_the_same_in_the_config_map(tmp_path: Path) -> None:
    for pattern, text in PATTERNS.items():
        for one in objects(made(tmp_path, text)):
            if one["kind"] == "ConfigMap":
                assert one["data"]["topology.yaml"] == text, pattern


def test_each_name_is_a_label_of_dns_and_each_reference_leads_to_an_object(tmp_path: Path) -> None:
    for text in PATTERNS.values():
        found = made(tmp_path, text)
        for datacenter in found:
            there = list(objects({datacenter: found[datacenter]}))
            kustomization = next(one for one in there if one["kind"] == "Kustomization")
            assert set(kustomization["resources"]) == set(found[datacenter]) - {"kustomization.yaml"}
            names = {(one["kind"], one["metadata"]["name"]) for one in there if "metadata" in one}
            assert all(len(name) <= 63 and name == name.lower() and "_" not in name for _, name in names)
            for spec in pods(there):
                assert ("ServiceAccount", spec["serviceAccountName"]) in names
                volumes = {one["name"]: one for one in spec["volumes"]}
                assert ("ConfigMap", volumes["topology"]["configMap"]["name"]) in names
                (container,) = spec["containers"]
                assert {one["name"] for one in container["volumeMounts"]} == set(volumes)


def test_no_pod_may_do_more_than_it_needs(tmp_path: Path) -> None:
    for text in PATTERNS.values():
        for spec in pods(objects(made(tmp_path, text))):
            (container,) = spec["containers"]
            assert spec["securityContext"]["runAsNonRoot"] is True
            assert spec["automountServiceAccountToken"] is False
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def pods(found: Any) -> Iterator[dict[str, Any]]:
    """Yield the specification of each pod of some objects."""
    for one in found:
        if one["kind"] == "SparkApplication":
            yield one["spec"]["driverSpec"]["podTemplateSpec"]["spec"]
        if one["kind"] == "Deployment":
            yield one["spec"]["template"]["spec"]
