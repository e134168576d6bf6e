"""Manifests of the four patterns, as agreed, and as the API server and Spark's operator would take them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from reconciler.declare import load
from reconciler.operate.deployments.rendering import Rendered, as_one, rendered

GOLDEN = Path(__file__).parents[2] / "golden" / "kubernetes"
KUBERNETES = "1.36"
SECURED = "security: {protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: %s, password: 'env:%s', ca: 'file:%s'}"
EAST = SECURED % ("mirror", "EAST_PASSWORD", "/etc/kafka/east/ca.pem")
WEST = SECURED % ("env:WEST_USER", "WEST_PASSWORD", "/etc/kafka/west/ca.pem")
PLAIN = "deploy: {kind: kubernetes, kubernetes: {image: 'images.example/anabranch:1.0.0'}}"
PATTERNS = {
    "active-passive": f"""\
version: 1
name: disaster-recovery
clusters:
  east: {{bootstrap: ["e1.example:9093"], datacenter: dc1, {EAST}}}
  west: {{bootstrap: ["w1.example:9093"], datacenter: dc2, {WEST}}}
flows:
  - {{from: east, to: west, topics: {{include: ["orders.*"]}}, tasks: 4}}
datacenters:
  dc2:
    deploy:
      kind: kubernetes
      python: /venv/bin/python
      metrics: {{listen: "0.0.0.0:9500", mirror-maker-names: new}}
      serve:
        tokens: ["read=env:READ_TOKEN", "operate:ops=file:/etc/anabranch/tokens/ops"]
        tls-certificate: /etc/anabranch/tls/tls.crt
        tls-key: /etc/anabranch/tls/tls.key
      kubernetes:
        namespace: mirrors
        image: images.example:5000/platform/anabranch@sha256:{"0" * 64}
        secret: kafka
        mounts:
          /etc/kafka/east: kafka-east
          /etc/kafka/west: kafka-west
          /etc/anabranch/tls: serve-tls
          /etc/anabranch/tokens: serve-tokens
        pull-secret: images
        memory: 6GiB
        cpus: 1.5
""",
    "active-active": f"""\
version: 1
name: pair
clusters:
  east: {{bootstrap: ["e1.example:9092"], datacenter: dc1}}
  west: {{bootstrap: ["w1.example:9092"], datacenter: dc2}}
replication:
  - {{active-active: [east, west]}}
datacenters:
  dc1: {{{PLAIN}}}
  dc2: {{{PLAIN}}}
""",
    "aggregation": f"""\
version: 1
name: totals
clusters:
  one: {{bootstrap: ["b1.one.example:9092"], datacenter: stores}}
  two: {{bootstrap: ["b1.two.example:9092"], datacenter: stores}}
  all: {{bootstrap: ["b1.all.example:9092"], datacenter: Head_Office}}
replication:
  - {{aggregation: {{from: [one, two], to: all}}}}
datacenters:
  Head_Office:
    {PLAIN[:-2]}, secret: kafka}}, metrics: {{}}}}
""",
    "fan-out": """\
version: 1
name: spread
clusters:
  head: {bootstrap: ["b1.head.example:9092"], datacenter: dc1}
  one: {bootstrap: ["b1.one.example:9092"], datacenter: dc2}
  two: {bootstrap: ["b1.two.example:9092"], datacenter: dc2}
replication:
  - {fan-out: {from: head, to: [one, two]}}
datacenters:
  dc2:
    deploy: {kind: kubernetes, processes: 2, kubernetes: {image: "images.example/anabranch:1.0.0", memory: 2GB}}
""",
}


def made(folder: Path, text: str) -> Rendered:
    file = folder / "topology.yaml"
    file.write_text(text)
    return rendered(load([file]))


def objects(found: Rendered) -> Iterator[dict[str, Any]]:
    for files in found.values():
        for text in files.values():
            yield from YAML(typ="safe", pure=True).load_all(text)


@cache
def spark_application() -> Draft7Validator:
    packed = (GOLDEN / "sparkapplication-v1.schema.json.gz").read_bytes()
    return Draft7Validator(json.loads(gzip.decompress(packed)))


def check(one: dict[str, Any]) -> None:
    """Check an object as the API server would, with no field that its kind does not have."""
    match one["kind"]:
        case "SparkApplication":
            spark_application().validate(one)
        case "Kustomization":
            assert set(one) == {"apiVersion", "kind", "resources"}
        case _:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)


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
