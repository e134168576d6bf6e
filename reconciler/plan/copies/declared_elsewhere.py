"""Copies that another tool declares (`create: false`), compared with what the flow would have made.

Pure. Nothing is done to them: the plan reports what differs, and the tool that declares them has to change it.
"""

from __future__ import annotations

from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedTopic


def unlike(topic: DesiredTopic, found: ObservedTopic) -> str:
    """Return in what a topic is other than it should be, or nothing where it will do.

    Settings count as they are in force, where that is known: a topic need not have what its brokers default to.

    Args:
        topic: as it should be.
        found: as it is.
    """
    said = []
    if found.partitions != topic.partitions:
        said.append(f"it has {found.partitions} partitions, expected {topic.partitions}")
    if found.replicas < topic.replication_factor:
        said.append(f"it has {found.replicas} replicas, expected {topic.replication_factor}")
    for setting in topic.settings:
        value = found.configs.get(setting.key, found.effective.get(setting.key))
        if not setting.accepts(value):
            is_now = "is not set" if value is None else f"is {value}"
            said.append(f"{setting.key} {is_now}, expected {setting.value}")
    return f"another tool declares it (create: false), and an apply leaves it: {'; '.join(said)}" if said else ""
