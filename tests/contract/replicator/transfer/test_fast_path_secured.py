"""An express to several leaders at the target, over TLS and with passwords that are asked for again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster, start_all, stop_all
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from tests.support.replicator.copying import Running, assert_counted, identical, spec_of
from tests.support.replicator.trickles import Line, Trickle, make
from tests.support.wire.tls import reference

PASSWORD = "admin-secret"
OPTIONS = ClusterOptions(users={"admin": PASSWORD}, tls=True, overrides={"connections.max.reauth.ms": "1200"})


def declared(alias: str, cluster: EmbeddedCluster) -> Cluster:
    security = Security("SASL_SSL", "PLAIN", "admin", Reference("env", "ADMIN_PASSWORD"), ca=reference(cluster.ca))
    return Cluster(alias, tuple(cluster.bootstrap.split(",")), security=security)


@pytest.mark.long
def test_what_trickles_in_goes_to_several_secured_brokers(
    topic_name: str, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", PASSWORD)
    clusters = EmbeddedCluster("one", OPTIONS), EmbeddedCluster("three", replace(OPTIONS, nodes=3))
    start_all(clusters)
    try:
        one, three = clusters
        topics = make(one, three, topic_name, replicas=2, partitions=3)
        spec = spec_of(declared("east", one), declared("west", three), *topics)
        # Who logs in too late loses its connection: a producer that repeats what it sent must not store it twice.
        produced = one.client_config() | {"enable.idempotence": "true"}
        with Running(spec) as running, Trickle(produced, topics, partitions=3) as trickle:
            # Meanwhile all of them log in again, several times.
            line.await_records(1_000)
            for broken in (line.break_target, line.break_source):
                broken()
                line.await_records()
            three.kill_broker(2)
            line.await_records()
            sent = trickle.finish()
            status = running.settled_again()
        # First what is stored: what is counted may only be compared with that.
        assert identical(spec, *topics) == sent
        assert_counted(sum(row.records for row in running.rows), sent, status)
        assert line.nodes == {1, 2, 3}
    finally:
        stop_all(clusters)
