"""A Kafka cluster as declared. `declare` makes it, everybody reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reconciler.model import hosts, tokens
from reconciler.model.clients import Clients
from reconciler.model.errors import Problem
from reconciler.model.security import SecretRef, Security, kafka_python_settings, librdkafka_settings
from reconciler.model.tokens import Token

DEFAULT_DATACENTER = "default"


@dataclass(frozen=True)
class Replicator:
    """Whom tasks log in as on a cluster, where it is somebody else than whoever applies.

    Attributes:
        principal: as Kafka writes it: `User:mirror`.
        reconcile: whether it may also do what the reconcile loop needs.
        optional: whether it may also do what copying does without, with less.
    """

    principal: str
    reconcile: bool = True
    optional: bool = False


@dataclass(frozen=True)
class Cluster:
    """One declared cluster.

    Attributes:
        alias: its name in the topology and in remote topics.
        bootstrap: `host:port` of one or more brokers.
        datacenter: where it stands.
        security: how clients authenticate.
        rack: near which of its racks records are read, or `env:NAME` of who says that; None reads from the leaders.
        cluster_id: Kafka's own id of it; None where any cluster at these addresses is the one that is meant.
        replicator: whom an apply allows what flows need here; None where nobody needs to be.
        clients: of those that read from it, write to it and administer it.
    """

    alias: str
    bootstrap: tuple[str, ...]
    datacenter: str = DEFAULT_DATACENTER
    security: Security = field(default_factory=Security)
    rack: str | None = None
    cluster_id: str | None = None
    replicator: Replicator | None = None
    clients: Clients = field(default_factory=Clients)

    def other_cluster(self, found: str | None) -> Problem | None:
        """Return the problem that another cluster answers than the declared one; None where it is the one.

        Args:
            found: the id that it says.
        """
        if self.cluster_id in (None, found):
            return None
        return Problem(
            "AB423",
            self.where,
            f"is cluster {found}, and cluster-id says {self.cluster_id}: another one answers at these addresses",
            "correct bootstrap; where the cluster was made anew on purpose, correct cluster-id",
        )

    def client_rack(self) -> str:
        """Return near which of its brokers' racks this process is; empty where nobody says.

        Raises:
            EnvironmentFault: AB304, the variable that says it is not set.
        """
        if self.rack is None or not self.rack.startswith("env:"):
            return self.rack or ""
        return SecretRef.parse(self.rack).resolve(f"rack of {self.where}")

    def librdkafka(self) -> dict[str, Any]:
        """Return the connection settings for confluent-kafka, which administers, secrets resolved.

        With OAUTHBEARER, a client is to be polled right after it was made: it asks for its first token then.

        Raises:
            EnvironmentFault: AB309, it may not be connected to from here; AB304, a secret cannot be resolved.
        """
        self.check_hosts()
        settings: dict[str, Any] = {"bootstrap.servers": ",".join(self.bootstrap)}
        if self.clients.admin.client_id is not None:
            settings["client.id"] = self.clients.admin.client_id
        if self.security.oauth is not None:
            settings["oauth_cb"] = self._for_librdkafka
        return settings | librdkafka_settings(self.security, self.where)

    def _for_librdkafka(self, _config: str) -> tuple[str, float]:
        token = self.token()
        return token.text, token.expires

    def kafka_python(self) -> dict[str, Any]:
        """Return the connection settings for kafka-python, secrets resolved, without where tokens come from.

        Raises:
            EnvironmentFault: AB309, it may not be connected to from here; AB304, a secret cannot be resolved.
        """
        self.check_hosts()
        return {"bootstrap_servers": list(self.bootstrap), **kafka_python_settings(self.security, self.where)}

    def check_hosts(self) -> None:
        """Make sure that this machine allows connections to the cluster, and to where its tokens come from.

        Raises:
            EnvironmentFault: AB309, it does not.
        """
        hosts.check(self.where, self.bootstrap, self.token_endpoints)

    @property
    def token_endpoints(self) -> tuple[str, ...]:
        """The URLs that are asked for tokens."""
        oauth = self.security.oauth
        return () if oauth is None or oauth.token_endpoint is None else (oauth.token_endpoint,)

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
        return frozenset(logged_in | ({self.replicator.principal} if self.replicator else set()))

    @property
    def user(self) -> str:
        """How messages name whom clients log in as."""
        return self.security.principal

    @property
    def where(self) -> str:
        """How messages name this cluster."""
        return f"cluster {self.alias} ({','.join(self.bootstrap)})"
