"""What is asked about permissions, and what is left alone where they lack; clusters are made up."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reconciler.model.acls.requirements import Acl, ResourcePattern
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.observe.access import observe_access
from reconciler.observe.connection import Connection
from reconciler.observe.health import rights
from reconciler.plan.findings import health
from tests.unit.plan.findings.test_health import WEST

CLUSTER = frozenset({"ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"})
FLOWS = [Flow(name, "east", "west", Selection(("x",))) for name in ("one", "two")]


def connection(cluster: frozenset[str], **allowed: Any) -> Connection:
    """Return a connection whose user may do some things with the cluster, and with groups and transactional ids."""
    groups, ids = allowed.get("groups", lambda _: None), allowed.get("ids", lambda _: None)
    made = SimpleNamespace(
        cluster_operations=lambda: cluster,
        config_keys=lambda _: {"compression.gzip.level"},
        group_operations=lambda names: {name: groups(name) for name in names},
        why_no_transactions=lambda names: {name: found for name in names if (found := ids(name))},
        topic_operations=lambda _: {},
        metadata=SimpleNamespace(topics={}),
    )
    return cast("Connection", made)


@pytest.mark.parametrize("cluster", [CLUSTER, CLUSTER - {"CREATE"}], ids=["everything", "less"])
def test_who_may_do_everything_with_the_cluster_may_not_do_everything(cluster: frozenset[str]) -> None:
    here = connection(cluster, groups=lambda _: frozenset(), ids=lambda _: "refused")
    found = observe_access(here, (), "shop", FLOWS).refusals
    assert [(one.flow, one.operation) for one in found] == [
        *(("one", "READ"), ("one", "WRITE")),
        *(("two", "READ"), ("two", "WRITE")),
    ]


def test_where_all_is_allowed_one_flow_is_asked_for_all() -> None:
    asked: list[str] = []
    assert observe_access(connection(CLUSTER, ids=asked.append), (), "shop", FLOWS).refusals == ()
    assert len(asked) == 1


@pytest.mark.parametrize("told", [frozenset({"DESCRIBE"}), frozenset({"READ", "DESCRIBE"}), frozenset(), None])
def test_groups_that_are_taken_along_need_to_be_described_alone(told: frozenset[str] | None) -> None:
    groups = (Acl("west", "replicate", "group", ResourcePattern("billing"), "DESCRIBE", False, "", ("f",)),)
    seen = rights(connection(CLUSTER, groups=lambda _: told), groups)
    check, _ = health.permissions(WEST, groups, seen)
    assert check.level == ("failure" if told == frozenset() else "ok"), check


@pytest.mark.parametrize(("allowed", "level"), [({"DESCRIBE"}, "ok"), ({"ALTER"}, "ok"), ({"CREATE"}, "failure")])
def test_to_describe_the_cluster_is_no_marker(allowed: Collection[str], level: str) -> None:
    acls = (Acl("west", "replicate", "cluster", ResourcePattern("kafka-cluster"), "DESCRIBE", False, "", ("f",)),)
    check, _ = health.permissions(WEST, acls, rights(connection(frozenset(allowed)), acls))
    assert check.level == level
