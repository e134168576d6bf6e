"""The fields of a flow, each with the place that it comes from, and what overrides what.

From general to specific: built-in defaults, `policy` and `defaults`, the pattern, the entry under `flows`. Fields
inside `topics` and `policy` count one by one, so an exclude list under `defaults` survives an include list elsewhere;
a list replaces a list, and a start another start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, cast

from reconciler.declare.documents.located import SourcePlace, Value
from reconciler.declare.documents.quantities import byte_count, byte_rate, moment, seconds, short_seconds
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.flow import (
    DEFAULT_HEARTBEATS,
    Delivery,
    Fill,
    Flow,
    IsolationLevel,
    OffsetsMode,
    OnDataLoss,
    OnRecreate,
)
from reconciler.model.declared.groups import USUALLY_EXCLUDED, GroupRules
from reconciler.model.declared.limits import LIMITS, Limits
from reconciler.model.declared.start import Start, StartAt
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.policies.types import TYPES, Otherwise, PolicyKind

PATTERN_KINDS = ("fan-out", "aggregation", "active-active", "xdcr")
FIELDS = (
    *("topics", "policy", "offsets", "delivery", "start", "isolation-level", "fill", "on-data-loss", "on-recreate"),
    *("quota", "batch-size", "largest-batch", "compression", "linger", "commit-interval", "dlq", "tasks", "partitions"),
    *("replication-factor", "refresh-interval", "limits", "configs", "acls", "groups", "heartbeats", "enabled"),
    *("failed-over", "create"),
)


class DeclaredSetting(NamedTuple):
    """One effective value; its place is None where it is built in."""

    value: Value
    place: SourcePlace | None


Settings: TypeAlias = Mapping[str, DeclaredSetting]

_BUILT_IN_VALUES: dict[str, Value] = {
    "topics.include": [".*"],
    "topics.exclude": [],
    "topics.required": False,
    "policy.type": "default",
    "policy.separator": ".",
    "policy.rules": [],
    "policy.otherwise": "default",
    "policy.class": None,
    "policy.options": {},
    "offsets": "auto",
    "delivery": "exactly-once",
    "start": "earliest",
    "isolation-level": "read_committed",
    "fill": "auto",
    "on-data-loss": "park",
    "on-recreate": "park",
    "quota": None,
    "batch-size": "256KiB",
    "largest-batch": "128MiB",
    "compression": "source",
    "linger": "7ms",
    "commit-interval": "500ms",
    "dlq": None,
    "tasks": 1,
    "partitions": None,
    "replication-factor": None,
    "refresh-interval": "60s",
    "limits.topics": Limits.topics,
    "limits.partitions": Limits.partitions,
    "limits.growth": Limits.growth,
    "configs.sync": True,
    "configs.include": [],
    "configs.exclude": [],
    "configs.set": {},
    "acls": True,
    "groups.include": [],
    "groups.exclude": list(USUALLY_EXCLUDED),
    "groups.sync-offsets": False,
    "groups.interval": "60s",
    "heartbeats": False,
    "enabled": True,
    "failed-over": False,
    "create": True,
}
BUILT_IN: Settings = {key: DeclaredSetting(value, None) for key, value in _BUILT_IN_VALUES.items()}


def written_at(place: SourcePlace) -> Settings:
    """Return the fields of a flow that the mapping at `place` writes."""
    fields = cast("dict[str, Value]", place.value or {})
    written: dict[str, DeclaredSetting] = {}
    for key in FIELDS:
        value = fields.get(key)
        if isinstance(value, dict) and key != "start":
            written |= {f"{key}.{inner}": DeclaredSetting(value[inner], place / key / inner) for inner in value}
        elif key in fields:
            written[key] = DeclaredSetting(value, place / key)
    return written


def policy_at(place: SourcePlace) -> Settings:
    """Return what the top-level policy at `place` writes."""
    fields = cast("dict[str, Value]", place.value or {})
    return {f"policy.{inner}": DeclaredSetting(fields[inner], place / inner) for inner in fields}


def start_of(value: str | dict[str, Value]) -> Start:
    """Return where copies begin: a word, or a time or offsets by their key; the earliest for any other key."""
    if isinstance(value, str):
        return Start(cast("StartAt", value))
    if "timestamp" in value:
        return Start("timestamp", moment(cast("str", value["timestamp"])))
    if "offsets" not in value:
        return Start()
    named = cast("dict[str, list[int]]", value["offsets"])
    return Start("offsets", 0, tuple((topic, tuple(map(int, numbers))) for topic, numbers in sorted(named.items())))


def flow_of(settings: Settings, name: str, ends: tuple[str, str], origin: str) -> Flow:
    """Return the flow that effective settings describe; they have passed the schema."""
    value = {key: setting.value for key, setting in settings.items()}
    factor = cast("int | None", value["replication-factor"])
    partitions = cast("int | None", value["partitions"])
    quota = cast("str | None", value["quota"])
    create = cast("bool", value["create"])
    return Flow(
        name=name,
        source=ends[0],
        target=ends[1],
        topics=Selection(
            include=tuple(cast("list[str]", value["topics.include"])),
            exclude=tuple(cast("list[str]", value["topics.exclude"])),
            required=cast("bool", value["topics.required"]),
        ),
        policy=_policy_of(settings),
        offsets=cast("OffsetsMode", value["offsets"]),
        delivery=cast("Delivery", value["delivery"]),
        start=start_of(cast("str | dict[str, Value]", value["start"])),
        isolation_level=cast("IsolationLevel", value["isolation-level"]),
        fill=cast("Fill", value["fill"]),
        on_data_loss=cast("OnDataLoss", value["on-data-loss"]),
        on_recreate=cast("OnRecreate", value["on-recreate"]),
        quota=None if quota is None else byte_rate(quota),
        batch_size=byte_count(cast("str | int", value["batch-size"])),
        largest_batch=byte_count(cast("str", value["largest-batch"])),
        compression=str(value["compression"]),
        linger=short_seconds(cast("str", value["linger"])),
        commit_interval=short_seconds(cast("str", value["commit-interval"])),
        dlq=cast("str | None", value["dlq"]),
        # 4.0 is a whole number to JSON Schema.
        tasks=int(cast("int", value["tasks"])),
        partitions=None if partitions is None else int(partitions),
        replication_factor=None if factor is None else int(factor),
        refresh_interval=seconds(cast("str", value["refresh-interval"])),
        limits=Limits(*(int(cast("int", value[f"limits.{limit}"])) for limit in LIMITS)),
        configs=ConfigRules(
            sync=cast("bool", value["configs.sync"]),
            include=tuple(cast("list[str]", value["configs.include"])),
            exclude=tuple(cast("list[str]", value["configs.exclude"])),
            set=_texts(cast("dict[str, Value]", value["configs.set"])),
            places=_places(settings["configs.set"]),
        ),
        # What another tool declares has ACLs of that tool, unless a file declares them.
        acls=cast("bool", value["acls"]) and (create or settings["acls"].place is not None),
        groups=GroupRules(
            include=tuple(cast("list[str]", value["groups.include"])),
            exclude=tuple(cast("list[str]", value["groups.exclude"])),
            sync_offsets=cast("bool", value["groups.sync-offsets"]),
            interval=seconds(cast("str", value["groups.interval"])),
        ),
        heartbeats=_heartbeats(cast("bool | str", value["heartbeats"])),
        enabled=cast("bool", value["enabled"]),
        failed_over=cast("bool", value["failed-over"]),
        create=create,
        origin=origin,
    )


def _heartbeats(value: bool | str) -> float:
    """Return seconds between two heartbeats; 0 where there are none."""
    if isinstance(value, bool):
        return DEFAULT_HEARTBEATS if value else 0.0
    return seconds(value)


def _texts(values: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    """Return settings with their values as Kafka writes them, by key."""

    def text(value: Value) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        # 4.0 is a whole number to JSON Schema.
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    return tuple((key, text(one)) for key, one in sorted(values.items()))


def _places(written: DeclaredSetting) -> tuple[tuple[str, str], ...]:
    """Return where a file declares the values of a mapping, by key."""
    place = written.place
    if place is None:
        return ()
    return tuple((key, (place / key).where) for key in sorted(cast("dict[str, Value]", written.value)))


def policy_place(settings: Settings, rule: int | None = None) -> SourcePlace | None:
    """Return the place that decides how topics are named: a rule, the class, the type; None where it is built in.

    Args:
        settings: effective settings.
        rule: number of a rename rule.
    """
    policy_type = TYPES.get(cast("PolicyKind", settings["policy.type"].value))
    chosen = f"policy.{policy_type.needs}" if policy_type and policy_type.needs else "policy.type"
    place = settings[chosen].place or settings["policy.type"].place
    return place / rule if place and rule is not None else place


def _policy_of(settings: Settings) -> ReplicationPolicy:
    place = policy_place(settings)
    written = settings["policy.rules"]
    return ReplicationPolicy(
        kind=cast("PolicyKind", settings["policy.type"].value),
        separator=cast("str", settings["policy.separator"].value),
        rules=tuple(
            RenameRule(rule["from"], rule["to"], (written.place / index).where if written.place else "")
            for index, rule in enumerate(cast("list[dict[str, str]]", written.value))
        ),
        otherwise=cast("Otherwise", settings["policy.otherwise"].value),
        entry_point=cast("str | None", settings["policy.class"].value) or "",
        options=tuple(sorted(cast("dict[str, str]", settings["policy.options"].value).items())),
        place=place.where if place else "",
    )
