"""MirrorMaker 1: a file for each consumer, one for the producer, and the options of its command.

Source: https://kafka.apache.org/36/documentation.html#basic_ops_mirror_maker, and `kafka.tools.MirrorMaker` in 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.convert.clusters import ClusterKeys
from reconciler.convert.flows import FlowFields, as_it_is, keys_of_clients, no_keys
from reconciler.convert.parts import FlowEnds, TopologyParts
from reconciler.convert.settings import CONTRADICTS, Loss, Setting, Settings
from reconciler.convert.values import expressions, whole
from reconciler.model.base.errors import DeclaredInputError, Problem

TARGET = "target"
_LINE = "the command line"


@dataclass(frozen=True)
class MirrorMaker1:
    """What a process of it is started with.

    Attributes:
        consumers: settings of each `--consumer.config`, and their file.
        producer: settings of `--producer.config`, and their file.
        include: of `--include` or `--whitelist`.
        exclude: of `--blacklist`.
        streams: of `--num.streams`.
    """

    consumers: Sequence[tuple[Settings, str]]
    producer: tuple[Settings, str]
    include: str | None = None
    exclude: str | None = None
    streams: int | None = None


def convert(command: MirrorMaker1) -> TopologyParts:
    """Return what a command declares: a flow for each source, which keeps the names of topics.

    Raises:
        DeclaredInputError: AB140, brokers are missing; AB141, both or neither of the lists are given; AB142, a setting
            or an expression has no equal.
    """
    if (command.include is None) == (command.exclude is None):
        message = "expected exactly one of --include (or --whitelist) and --blacklist"
        raise DeclaredInputError(Problem(CONTRADICTS, _LINE, message, "give the one that the process has"))
    parts = TopologyParts(left=[command.producer[0], *(settings for settings, _ in command.consumers)])
    many = len(command.consumers) > 1
    for number, (settings, where) in enumerate(command.consumers, 1):
        alias = f"source-{number}" if many else "source"
        parts.put_cluster(alias, settings, _cluster_keys("consumer"), where)
        writing = parts.fields_of(command.producer[0], keys_of_clients(no_keys, as_it_is))
        reading = parts.fields_of(settings, keys_of_clients(as_it_is, no_keys))
        parts.flows[FlowEnds(alias, TARGET)] = writing | reading | _named(command)
        for known in ("group.id", "groupid"):
            if (found := settings.first(known)) is not None:
                why = f"positions are the flow's own: `adopt --from mm1` goes on where the group {found.value} stands"
                parts.losses.append(Loss(found, why))
    settings, where = command.producer
    parts.put_cluster(TARGET, settings, _cluster_keys("producer"), where)
    return parts


def _named(command: MirrorMaker1) -> FlowFields:
    """Return the fields that options of the command stand for."""
    made: FlowFields = {("policy", "type"): ("identity", None, "topics keep their names")}
    for option, text in (("include", command.include), ("exclude", command.exclude)):
        if text is not None:
            setting = Setting(f"--{option}", text.strip("\"'"), _LINE)
            made["topics", option] = (expressions(setting), setting, "")
    if command.streams is not None:
        setting = Setting("--num.streams", str(command.streams), _LINE)
        made[("tasks",)] = (whole(setting), setting, "")
    return made


def _cluster_keys(role: str) -> ClusterKeys:
    return ClusterKeys(as_it_is, as_it_is, lambda asked, name: (name,) if asked == role else ())
