"""Filling gaps as a user who may not do everything: the other way, or a clear refusal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.cluster import Cluster
from reconciler.model.security import SecretRef, Security
from reconciler.replicator.fill import FillRefused
from tests.contract.kafka import create
from tests.support.acls import allow
from tests.support.filling import desk, place

USERS = {"admin": "admin-secret", "filler": "filler-secret"}
READ, WRITE, ALTER = AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("secured", ClusterOptions(users=USERS))) as (cluster,):
        yield cluster


def test_what_is_refused_is_done_the_other_way_or_named(
    secured: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FILLER_PASSWORD", USERS["filler"])
    security = Security("SASL_PLAINTEXT", "PLAIN", "filler", SecretRef("env", "FILLER_PASSWORD"))
    create(secured, "gaps")
    allow(secured, "filler", ResourceType.TOPIC, "gaps", READ)
    with desk(Cluster("west", tuple(secured.bootstrap.split(",")), security=security)) as at:

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
