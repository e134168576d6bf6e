"""A Kafka cluster as declared. `declare` makes it, everybody reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.security import Security, kafka_python_settings, librdkafka_settings

DEFAULT_DATACENTER = "default"


@dataclass(frozen=True)
class Cluster:
    """One declared cluster.

    Attributes:
        alias: its name in the topology and in remote topics.
        bootstrap: `host:port` of one or more brokers.
        datacenter: where it stands.
        security: how clients authenticate.
    """

    alias: str
    bootstrap: tuple[str, ...]
    datacenter: str = DEFAULT_DATACENTER
    security: Security = field(default_factory=Security)

    def librdkafka(self) -> dict[str, str]:
        """Return the connection settings for confluent-kafka, secrets resolved.

        Raises:
            EnvironmentFault: AB304, a secret cannot be resolved.
        """
        return {"bootstrap.servers": ",".join(self.bootstrap)} | librdkafka_settings(self.security, self.where)

    def kafka_python(self) -> dict[str, object]:
        """Return the connection settings for kafka-python, secrets resolved.

        Raises:
            EnvironmentFault: AB304, a secret cannot be resolved.
        """
        return {"bootstrap_servers": list(self.bootstrap), **kafka_python_settings(self.security, self.where)}

    @property
    def user(self) -> str:
        """How messages name whom clients log in as."""
        return f"user {self.security.username}" if self.security.username else "an anonymous user"

    @property
    def where(self) -> str:
        """How messages name this cluster."""
        return f"cluster {self.alias} ({','.join(self.bootstrap)})"
