"""Files to be converted, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.convert.conversion import Converted, convert
from reconciler.declare import load
from reconciler.model.declared.topology import Topology

EMR = {
    "clusters": "emrsource,emrdest",
    "source.cluster.alias": "emrsource",
    "target.cluster.alias": "emrdest",
    "target.cluster.bootstrap.servers": "{target}",
    "source.cluster.bootstrap.servers": "{source}",
    "key.converter": " org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "replication.factor": "{replicas}",
    "source.cluster.security.protocol": "PLAINTEXT",
    "target.cluster.security.protocol": "PLAINTEXT",
}
"""What all three connectors of the guide for two clusters of E-MapReduce have, to be formatted."""
HEARTBEATS = r"(.*\.)?heartbeats"
"""What is put behind the topics of a flow: MirrorMaker 2 takes heartbeats along whatever they are."""
_CLASS = "org.apache.kafka.connect.mirror.Mirror{}Connector"
EMR_CONNECTORS = {
    "Source": {
        "topics": "^foo.*",
        "tasks.max": "4",
        "offset-syncs.topic.replication.factor": "{replicas}",
        "sync.topic.acls.interval.seconds": "20",
        "sync.topic.configs.interval.seconds": "20",
        "refresh.topics.interval.seconds": "20",
        "refresh.groups.interval.seconds": "20",
        "consumer.group.id": "mm2-mirror-source-consumer-group",
        "producer.enable.idempotence": "true",
    },
    "Checkpoint": {
        "tasks.max": "1",
        "checkpoints.topic.replication.factor": "{replicas}",
        "emit.checkpoints.interval.seconds": "20",
    },
    "Heartbeat": {
        "tasks.max": "1",
        "heartbeats.topic.replication.factor": "{replicas}",
        "emit.heartbeats.interval.seconds": "20",
    },
}
"""What each of them has for itself."""


def emr(folder: Path, source: str, target: str, replicas: int = 3) -> list[Path]:
    """Write the three files of that guide."""
    written = []
    for kind, own in EMR_CONNECTORS.items():
        name = f"mm2-{kind.lower()}-connector"
        config = {"name": name, "connector.class": _CLASS.format(kind), **EMR, **own}
        filled = {key: value.format(source=source, target=target, replicas=replicas) for key, value in config.items()}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(filled, indent=2))
        written.append(path)
    return written


def converted(folder: Path, text: str, name: str = "mm2.properties") -> tuple[Topology, Converted]:
    """Convert one file of a content; return the topology that came of it."""
    path = folder / name
    path.write_text(text)
    made = convert([path])
    return declared(folder, made), made


def declared(folder: Path, made: Converted) -> Topology:
    """Return the topology of a converted text."""
    file = folder / "converted.yaml"
    file.write_text(made.text)
    return load([file])


def lost(made: Converted) -> dict[str, str]:
    """Return what has no equal, by key."""
    return {loss.setting.key: loss.why for loss in made.losses}


def connector(kind: str, **more: str) -> dict[str, Any]:
    """Return the configuration of a connector between `a` and `b`; underscores stand for dots."""
    own: Mapping[str, str] = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "connector.class": _CLASS.format(kind),
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "a.example:9092",
        "target.cluster.bootstrap.servers": "b.example:9092",
        **own,
    }
