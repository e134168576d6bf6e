"""A topology of each pattern whose data centres run in pods, and its manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reconciler.declare import load
from reconciler.operate.deployments.rendering import Rendered, rendered

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
    """Return the manifests of a topology."""
    file = folder / "topology.yaml"
    file.write_text(text)
    return rendered(load([file]))


def objects(found: Rendered) -> Iterator[dict[str, Any]]:
    """Yield each object of manifests."""
    for files in found.values():
        for text in files.values():
            yield from YAML(typ="safe", pure=True).load_all(text)
