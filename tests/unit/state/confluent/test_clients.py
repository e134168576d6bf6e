"""Clients of confluent-kafka: certificates that cannot be used are named, and refused ones lead to a new client."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from reconciler.embedded.certificates import Authority
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Kerberos, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.state.confluent import clients
from tests.support.wire.tls import reference


def with_certificate(folder: Path) -> tuple[Cluster, Path]:
    """Return a cluster with a certificate, and the file of its key."""
    certificate, key = Authority("ours").issue("mirror").write(folder, "mirror")
    security = Security("SSL", certificate=reference(certificate), key=reference(key))
    return Cluster("east", ("127.0.0.1:1",), security=security), key


@pytest.mark.parametrize("content", ["no PEM: hunter2-Sq7", Authority("others").issue("other").key])
def test_a_key_that_cannot_be_used_is_named(tmp_path: Path, content: str) -> None:
    cluster, key = with_certificate(tmp_path)
    key.write_text(content)
    with pytest.raises(EnvironmentFault) as caught:
        clients.make(AdminClient, cluster)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB306", cluster.where)
    assert "the owner of certificate" in problem.message
    assert "hunter2" not in str(problem)


def test_clients_without_kerberos_say_so() -> None:
    security = Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("mirror@A.B"))
    cluster = Cluster("east", ("127.0.0.1:1",), security=security)
    try:
        clients.make(AdminClient, cluster)
    except EnvironmentFault as error:
        (problem,) = error.problems
    else:
        pytest.skip("confluent-kafka was built with Kerberos here")
    assert (problem.code, problem.where) == ("AB306", cluster.where)
    assert "principal mirror@A.B cannot log in with Kerberos here" in problem.message
    assert "from source" in problem.remedy


def test_a_client_that_was_not_let_in_is_made_anew_with_what_is_there_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_RENEW_SECONDS", 0.0)
    password = tmp_path / "password"
    password.write_text("old")
    security = Security("SASL_PLAINTEXT", "PLAIN", "mirror", Reference("file", str(password)))
    kept: clients.Renewed[Producer] = clients.Renewed(
        Producer, Cluster("east", ("127.0.0.1:1",), security=security), {}
    )
    first = kept.get()
    kept.reports.errors.append(KafkaError(KafkaError._TRANSPORT))
    assert kept.get() is first
    kept.reports.errors.append(KafkaError(KafkaError._AUTHENTICATION))
    password.unlink()
    # Nothing better can be made.
    assert kept.get() is first
    password.write_text("new")
    second = kept.get()
    assert second is not first
    assert kept.get() is second
    kept.close()
    assert kept.client is None


def test_a_process_shares_a_client_for_as_long_as_something_holds_it() -> None:
    east, west = (Cluster(name, ("127.0.0.1:1",)) for name in ("east", "west"))

    def held(cluster: Cluster, settings: dict[str, object]) -> clients.Renewed[Producer]:
        return clients.shared(Producer, cluster, settings)

    one = held(east, {"linger.ms": 0, "acks": "all"})
    client = one.get()
    again = held(Cluster("east", ("127.0.0.1:1",)), {"acks": "all", "linger.ms": 0})
    assert (again is one, again.get() is client) == (True, True)
    others = [held(west, {"linger.ms": 0, "acks": "all"}), held(east, {"linger.ms": 1, "acks": "all"}), held(east, {})]
    assert len({id(other) for other in (one, *others)}) == 4
    del one, again
    assert held(east, {"linger.ms": 0, "acks": "all"}).client is None


def test_an_answer_that_was_refused_is_asked_for_once_more_with_what_is_there_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_RENEW_SECONDS", 0.0)
    password = tmp_path / "password"
    password.write_text("old")
    security = Security("SASL_PLAINTEXT", "PLAIN", "mirror", Reference("file", str(password)))
    cluster = Cluster("east", ("127.0.0.1:1",), security=security)
    kept: clients.Renewed[AdminClient] = clients.Renewed(AdminClient, cluster, {})
    first = kept.get()
    kept.reports.errors.append(KafkaError(KafkaError._TRANSPORT))
    asked: list[AdminClient] = []

    def question(client: AdminClient, _seconds: float) -> str:
        asked.append(client)
        # What was wrong with connections before is no matter now.
        assert not list(kept.reports.errors)
        if client is first:
            password.write_text("new")
            kept.reports.errors.append(KafkaError(KafkaError._AUTHENTICATION))
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return "yes"

    assert kept.ask(question, 5.0) == "yes"
    assert (len(asked), asked[0] is first, asked[1] is kept.client) == (2, True, True)

    # Whoever is refused again and again, however late, is told so.
    refusals: list[AdminClient] = []

    def always_refused(client: AdminClient, _seconds: float) -> str:
        refusals.append(client)
        kept.reports.errors.append(KafkaError(KafkaError._AUTHENTICATION))
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    with pytest.raises(EnvironmentFault) as told:
        kept.ask(always_refused, 5.0)
    assert [problem.code for problem in told.value.problems] == ["AB312"]
    assert len(set(refusals)) == 2

    # One that was made just now has the secrets of just now.
    monkeypatch.setattr(clients, "_RENEW_SECONDS", 60.0)
    fresh: clients.Renewed[AdminClient] = clients.Renewed(AdminClient, cluster, {})

    def refused(client: AdminClient, _seconds: float) -> str:
        fresh.reports.errors.append(KafkaError(KafkaError._AUTHENTICATION))
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    with pytest.raises(EnvironmentFault) as caught:
        fresh.ask(refused, 5.0)
    assert [problem.code for problem in caught.value.problems] == ["AB312"]


class Leaving:
    """A consumer whose broker leaves the cluster's metadata, or whose connection is lost, during some requests."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        assert (place.topic, place.partition, timeout) == ("orders", 3, 60.0)
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return 5, 17


def test_ends_of_a_partition_are_asked_for_again_where_a_connection_is_lost() -> None:
    leaving = Leaving(KafkaError._DESTROY_BROKER, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    assert clients.watermarks(leaving, "orders", 3, 60.0) == (5, 17)
    assert not leaving.codes


def test_another_answer_than_a_lost_connection_is_given_on() -> None:
    leaving = Leaving(KafkaError._DESTROY_BROKER, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TRANSPORT)
    with pytest.raises(KafkaException) as caught:
        clients.watermarks(leaving, "orders", 3, 60.0)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert leaving.codes == [KafkaError._TRANSPORT]


class Names:
    """Stands for a client that says of each address why its name has no number."""

    def __init__(self, cluster: Cluster, why: str, *, first: int | None = None) -> None:
        self.reports = clients.Reports()
        self.asked = 0
        self._errors = [
            KafkaError(
                KafkaError._RESOLVE, f"{one}/bootstrap: Failed to resolve '{one}': {why} (after 2ms in state CONNECT)"
            )
            for one in cluster.addresses[:first]
        ]

    def poll(self, _seconds: float) -> None:
        return None

    def ask(self, _seconds: float) -> None:
        self.asked += 1
        self.reports.errors.extend(self._errors)
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "broker transport failure"))


NOT_KNOWN = "Name or service not known"


@pytest.mark.parametrize(
    ("bootstrap", "message"),
    [
        (("b1.use.example:9092",), "the name b1.use.example cannot be resolved"),
        (("b1.x:9092", "b2.x:9093"), "none of the names b1.x, b2.x can be resolved"),
        (("b1.x:9092", "b1.x:9093"), "the name b1.x cannot be resolved"),
    ],
)
def test_names_that_are_not_known_are_told_at_once_with_their_place(bootstrap: tuple[str, ...], message: str) -> None:
    cluster = Cluster("us-east", bootstrap, place="payments.yaml:5")
    named = Names(cluster, NOT_KNOWN)
    with pytest.raises(Unreachable) as caught:
        clients.ask(cluster, named, named.reports, named.ask, 60.0)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where, problem.message) == ("AB310", "cluster us-east (payments.yaml:5)", message)
    assert named.asked == 1


@pytest.mark.parametrize(
    ("why", "first"), [("Temporary failure in name resolution", None), (NOT_KNOWN, 1)], ids=["for now", "one of two"]
)
def test_a_name_that_may_be_known_soon_or_beside_another_is_asked_for_again(why: str, first: int | None) -> None:
    cluster = Cluster("us-east", ("b1.x:9092", "b2.x:9092"), place="payments.yaml:5")
    named = Names(cluster, why, first=first)
    with pytest.raises(Unreachable) as caught:
        clients.ask(cluster, named, named.reports, named.ask, 0.3)
    assert named.asked > 1
    assert caught.value.problems[0].where == "cluster us-east (b1.x:9092,b2.x:9092)"


def test_where_a_cluster_is_declared_is_no_part_of_what_it_is() -> None:
    one, other = (Cluster("east", ("a:1",), place=place) for place in ("a.yaml:1", "b.yaml:9"))
    assert one == other
    assert Topology("t", {"east": one}, ()).digest == Topology("t", {"east": other}, ()).digest
