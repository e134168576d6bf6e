"""A Kafka cluster as declared. `declare` makes it, all other rooms read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.connection import hosts, tokens
from reconciler.model.connection.references import (
    ADDRESSES,
    CLUSTER_ID,
    KAFKA_PRINCIPAL,
    URL,
    Reference,
    Text,
    said,
    settled,
)
from reconciler.model.connection.security import Security, kafka_python_settings, librdkafka_settings
from reconciler.model.connection.tokens import Token
from reconciler.model.declared.clients import Clients

DEFAULT_DATACENTER = "default"
_PORTS = range(1, 65536)


@dataclass(frozen=True)
class Replicator:
    """The principal of tasks on a cluster, where it is another than that of `apply`.

    Attributes:
        principal: as Kafka writes it: `User:mirror`.
        reconcile: whether it may also do what the reconcile loop needs.
        optional: whether it may also do what copying does without, with less.
    """

    principal: Text
    reconcile: bool = True
    optional: bool = False

    @property
    def name(self) -> str:
        """The principal, looked up where it is declared by reference.

        Raises:
            EnvironmentFault: AB304, it cannot be looked up, or is none.
        """
        return settled(self.principal, "replicator.principal", KAFKA_PRINCIPAL)


@dataclass(frozen=True)
class Cluster:
    """One declared cluster.

    Attributes:
        alias: its name in the topology and in remote topics.
        bootstrap: `host:port` of one or more brokers, and references to such lists.
        datacenter: where it stands.
        security: how clients authenticate.
        rack: near which of its racks records are read; None reads from the leaders.
        cluster_id: Kafka's own id of it; None where any cluster at these addresses is the one that is meant.
        replicator: the principal to which an apply grants what flows need here; None where nothing is to be granted.
        clients: of those that read from it, write to it and administer it.
        place: file and line of its addresses; empty where no file declares it.
        state_replication_factor: replicas of topics of our own there; None means three, as far as brokers go.
    """

    alias: str
    bootstrap: tuple[Text, ...]
    datacenter: str = DEFAULT_DATACENTER
    security: Security = field(default_factory=Security)
    rack: Text | None = None
    cluster_id: Text | None = None
    replicator: Replicator | None = None
    clients: Clients = field(default_factory=Clients)
    place: str = field(default="", compare=False)
    state_replication_factor: int | None = None

    def other_cluster(self, found: str | None) -> Problem | None:
        """Return the problem that another cluster answers than the declared one; None where it is the one.

        Args:
            found: the id that it reports.

        Raises:
            EnvironmentFault: AB304, the declared id cannot be looked up.
        """
        if self.cluster_id is None or settled(self.cluster_id, self.where, CLUSTER_ID) == found:
            return None
        return Problem(
            "AB423",
            self.where,
            # Of a reference itself: what it leads to may have the form of an id and be a secret.
            f"is cluster {found}, and cluster-id is {self.cluster_id}: another one answers at these addresses",
            "correct bootstrap; where the cluster was made anew on purpose, correct cluster-id",
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        """`host:port` of its brokers, looked up where that is declared by reference.

        Raises:
            EnvironmentFault: AB304, that cannot be looked up, or is something else.
        """
        return tuple(dict.fromkeys(self._addresses()))

    def _addresses(self) -> Iterator[str]:
        for one in self.bootstrap:
            if not isinstance(one, Reference):
                yield one
                continue
            # `where` names the addresses, which are not known here.
            for address in filter(None, (part.strip() for part in settled(one, self._alone, ADDRESSES).split(","))):
                if int(address.rpartition(":")[2]) not in _PORTS:
                    raise one.misfit(self._alone, ADDRESSES.expected)
                yield address

    @property
    def declared_addresses(self) -> tuple[str, ...]:
        """Its addresses as the declaration has them: the same on every machine."""
        return tuple(map(str, self.bootstrap))

    def client_rack(self) -> str:
        """Return the rack of this process, for reads from near replicas; empty where none is declared.

        Raises:
            EnvironmentFault: AB304, it cannot be looked up.
        """
        return "" if self.rack is None else settled(self.rack, f"rack of {self.where}")

    @property
    def references(self) -> tuple[Reference, ...]:
        """Everything that is looked up when a connection is made."""
        own = (*self.bootstrap, self.rack, self.cluster_id)
        return (*(one for one in own if isinstance(one, Reference)), *self.security.references)

    def unresolved(self) -> list[Problem]:
        """Return what is wrong with references of the cluster on this machine: AB304 each."""
        oauth, kerberos = self.security.oauth, self.security.kerberos
        looks: list[Callable[[], object]] = [partial(one.check, self.where) for one in self.references]
        looks += [lambda: self.addresses, lambda: self.token_endpoints, lambda: self.other_cluster(None)]
        looks += [lambda: self.replicators] if self.replicator is not None else []
        looks += [partial(tokens.check, self.security, self.where)] if oauth is not None else []
        looks += [partial(kerberos.principal_at, self.where)] if kerberos is not None else []
        looks += [partial(settled, oauth.client_id, self.where)] if oauth is not None and oauth.client_id else []
        found: list[Problem] = []
        for look in looks:
            try:
                look()
            except EnvironmentFault as error:
                found += error.problems
        return list(dict.fromkeys(found))

    def librdkafka(self) -> dict[str, Any]:
        """Return the connection settings for confluent-kafka, which administers, secrets resolved.

        With OAUTHBEARER, a client is to be polled right after it was made: it requests its first token then.

        Raises:
            EnvironmentFault: AB309, it may not be connected to from here; AB304, a reference cannot be resolved.
        """
        self.check_hosts()
        settings: dict[str, Any] = {"bootstrap.servers": ",".join(self.addresses)}
        if self.clients.admin.client_id is not None:
            settings["client.id"] = self.clients.admin.client_id
        if self.security.oauth is not None:
            settings["oauth_cb"] = self._for_librdkafka
        return settings | librdkafka_settings(self.security, self.where)

    def _for_librdkafka(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        token = self.token()
        # A principal's name, which brokers take from the token.
        return token.text, token.expires, "", dict(token.extensions)

    def kafka_python(self) -> dict[str, Any]:
        """Return the connection settings for kafka-python, secrets resolved, without where tokens come from.

        Raises:
            EnvironmentFault: AB309, it may not be connected to from here; AB304, a reference cannot be resolved.
        """
        self.check_hosts()
        return {"bootstrap_servers": list(self.addresses), **kafka_python_settings(self.security, self.where)}

    def check_hosts(self) -> None:
        """Make sure that this machine allows connections to the cluster, and to where its tokens come from.

        Raises:
            EnvironmentFault: AB309, it does not; AB304, where they are cannot be looked up.
        """
        hosts.check(self.where, self.addresses, self.token_endpoints)

    @property
    def token_endpoints(self) -> tuple[str, ...]:
        """The URLs from which tokens are requested.

        Raises:
            EnvironmentFault: AB304, one cannot be looked up, or is none.
        """
        oauth = self.security.oauth
        if oauth is None or oauth.token_endpoint is None:
            return ()
        return (settled(oauth.token_endpoint, self.where, URL),)

    def token(self) -> Token:
        """Return a token for OAUTHBEARER.

        Raises:
            EnvironmentFault: AB309 it may not be connected to from here, AB307 no token can be had, AB304 a reference
                cannot be resolved.
        """
        self.check_hosts()
        return tokens.current(self.security, self.where)

    @property
    def replicators(self) -> frozenset[str]:
        """The principals that copy here, as far as the declaration names them, as Kafka writes them."""
        logged_in = {f"User:{self.security.user}"} if self.security.user else set()
        return frozenset(logged_in | ({self.replicator.name} if self.replicator else set()))

    @property
    def user(self) -> str:
        """The name of the client's principal in messages."""
        return self.security.principal

    @property
    def where(self) -> str:
        """How messages name this cluster: with its addresses, or where they are looked up while that leads to none."""
        return f"{self._alone} ({','.join(said(one, ADDRESSES) for one in self.bootstrap)})"

    @property
    def _alone(self) -> str:
        return f"cluster {self.alias}"
