"""Names that we have on target clusters; permissions are granted for them.

The replicator and the journals take them, `observe` reads whether they are allowed, `plan` decides which must be.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OWNED_TOPIC = re.compile(r"anabranch\.([a-z0-9][a-z0-9-]*)\.owned\.internal")


class StateNames(NamedTuple):
    """The topics on one target that hold the state of a topology, and the scratch topic of its probe.

    Attributes:
        owned: what is ours there, what is in force, what is failed over, the lock of apply; `apply` alone writes it.
        status: each task's heartbeat of every second.
        control: pauses, restarts, which task has which partition.
        copies: source topic ids and shifted runs of remote partitions.
        scratch: what the probe writes to; no journal.
    """

    owned: str
    status: str
    control: str
    copies: str
    scratch: str

    @property
    def journals(self) -> tuple[str, ...]:
        """The names of the journals, that of ownership first."""
        return self[:4]


def state_names(topology: str) -> StateNames:
    """Return the names of a topology's own topics: its name is in each, so that ACLs can part topologies.

    Names of topologies have no dots (`declare`), so no two of them get one name.
    """
    return StateNames(*(f"anabranch.{topology}.{one}.internal" for one in (*StateNames._fields[:4], "probe")))


SHARED_NAMES = StateNames(*(f"anabranch-{one}.internal" for one in (*StateNames._fields[:4], "probe")))
"""The topics that all topologies of a target share, where a release before topics per topology made them."""


def topology_of_owned(topic: str) -> str | None:
    """Return whose ownership journal a topic is by its name; None for every other topic and for the shared one."""
    found = _OWNED_TOPIC.fullmatch(topic)
    return None if found is None else found[1]


def lease_group(topology: str, flow: str) -> str:
    """Return the group whose members hold the leases of a flow's partitions."""
    return f"anabranch.{topology}.{flow}"


def turn_group(topology: str, flow: str) -> str:
    """Return the group that elects the process in charge of a flow's consumer groups."""
    return f"{lease_group(topology, flow)}:groups"


def transactional_prefix(topology: str, flow: str) -> str:
    """Return what all transactional ids of a flow begin with."""
    return f"anabranch.{topology}.{flow}."


def probe_names(topology: str) -> tuple[str, str]:
    """Return in place of which topology and flow a topology's probe has its transactional ids.

    They begin with `anabranch.TOPOLOGY:probe.`: no flow has a colon in its name.
    """
    return f"{topology}:probe", "trials"


def probe_prefix(topology: str) -> str:
    """Return what all transactional ids of a topology's probe begin with."""
    return f"anabranch.{probe_names(topology)[0]}."


SHARED_PROBE_NAMES = ("internal", "probe")
"""What `probe_names` returns beside the shared topics."""


SYNCS_PREFIX = "mm2-offset-syncs"
"""What the name of a topic of offset syncs begins with."""


def syncs_topic(source: str) -> str:
    """Return the topic at a target that holds the offset syncs of copies from `source`: MirrorMaker 2's name."""
    return f"{SYNCS_PREFIX}.{source}.internal"


DEFAULT_SEPARATOR = "."
CHECKPOINTS_SUFFIX = ("checkpoints", "internal")
"""What the name of a topic of checkpoints ends with, between separators."""


def checkpoints_topic(source: str, separator: str = DEFAULT_SEPARATOR) -> str:
    """Return the topic at a target that holds the checkpoints of groups of `source`.

    Args:
        source: alias of the source cluster.
        separator: of the replication policy. MirrorMaker 2 and its client put it into this name, too, unless
            `replication.policy.internal.topic.separator.enabled` is false.
    """
    return separator.join((source, *CHECKPOINTS_SUFFIX))


def connect_offsets_topic(source: str) -> str:
    """Return the topic at a target in which a dedicated MirrorMaker 2 keeps the offsets of its Kafka Connect."""
    return f"mm2-offsets.{source}.internal"
