"""Filling gaps as a user who may not do everything: the other way, or a clear refusal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Fill, Flow
from reconciler.model.names.own_names import probe_prefix, state_names
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.capabilities import REQUIRED
from reconciler.replicator.gaps import probe
from reconciler.replicator.gaps.fill import FillRefused
from tests.support.clusters.kafka import create
from tests.support.replicator.filling import desk, place
from tests.support.security.acls import allow

FILLS: tuple[Fill, ...] = ("auto", "markers", "transactions")
SCRATCH = state_names("tests").scratch
USERS = {"admin": "admin-secret", "filler": "filler-secret"}
READ, WRITE, ALTER = AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("secured", ClusterOptions(users=USERS))) as (cluster,):
        yield cluster


@pytest.fixture
def as_filler(secured: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("FILLER_PASSWORD", USERS["filler"])
    security = Security("SASL_PLAINTEXT", "PLAIN", "filler", Reference("env", "FILLER_PASSWORD"))
    return Cluster("west", tuple(secured.bootstrap.split(",")), security=security)


def test_what_may_not_be_tried_is_said_and_what_is_demanded_is_refused(
    secured: EmbeddedCluster, as_filler: Cluster
) -> None:
    """Runs first: the other test grants more."""
    flows: list[Flow] = [Flow("east-west", "east", "west", Selection(("orders",)), fill=fill) for fill in FILLS]
    either, markers, transactions = flows
    warnings: list[str] = []
    probe.check(as_filler, "tests", flows, warnings.append)
    assert warnings == [f"{as_filler.where}: what the cluster does was not tried, as topic {SCRATCH} may not be made"]

    create(secured, SCRATCH)
    allow(secured, "filler", ResourceType.TOPIC, SCRATCH, READ)
    warnings.clear()
    probe.check(as_filler, "tests", [either], warnings.append)
    assert len(warnings) == len(REQUIRED) + 1
    assert "log-end: the broker answers TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in warnings[0]
    assert "partitions park at gaps" in warnings[-1]

    allow(secured, "filler", ResourceType.TRANSACTIONAL_ID, probe_prefix("tests"), WRITE)
    warnings.clear()
    probe.check(as_filler, "tests", [either], warnings.append)
    expected = [f"{one}: the broker answers TOPIC_AUTHORIZATION_FAILED" for one in REQUIRED]
    assert [found for found, said in zip(expected, warnings, strict=False) if found not in said] == []

    allow(secured, "filler", ResourceType.TOPIC, SCRATCH, WRITE)
    warnings.clear()
    probe.check(as_filler, "tests", [either, transactions], warnings.append)
    (forgotten,) = warnings
    assert forgotten.startswith("what the cluster does is tried again at the next start: ")
    with pytest.raises(EnvironmentFault, match="ALTER on the cluster") as caught:
        probe.check(as_filler, "tests", [either, markers], warnings.append)
    assert [problem.code for problem in caught.value.problems] == ["AB362"]


def test_what_is_refused_is_done_the_other_way_or_named(secured: EmbeddedCluster, as_filler: Cluster) -> None:
    create(secured, "gaps")
    allow(secured, "filler", ResourceType.TOPIC, "gaps", READ)
    with desk(as_filler) as at:

        async def refused(how: str) -> str:
            filler = at.filler(how)
            with pytest.raises(FillRefused) as caught:
                await filler.settle(place("gaps"))
                await at.fill(filler, "gaps", 2)
            return str(caught.value)

        async def filled(how: str) -> str:
            filler = at.filler(how)
            await filler.settle(place("gaps"))
            assert await at.fill(filler, "gaps", 2) == 2
            return filler.describe()

        ids = "WRITE on transactional ids that begin with anabranch.tests.east-west.gaps.0 is refused"
        for how in ("auto", "markers", "transactions"):
            assert ids in at.run(partial(refused, how))
        allow(secured, "filler", ResourceType.TRANSACTIONAL_ID, "anabranch.", WRITE)
        assert "ALTER on the cluster is refused (CLUSTER_AUTHORIZATION_FAILED)" in at.run(lambda: refused("markers"))
        assert "WRITE on topic gaps is refused" in at.run(lambda: refused("auto"))
        allow(secured, "filler", ResourceType.TOPIC, "gaps", WRITE)
        assert at.run(lambda: filled("auto")) == "transactions"
        allow(secured, "filler", ResourceType.BROKER, "kafka-cluster", ALTER)
        assert at.run(lambda: filled("auto")) == "markers"
        assert at.run(lambda: filled("transactions")) == "transactions"
        assert at.run(lambda: at.end("gaps")) == 6
