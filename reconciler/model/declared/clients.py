"""What is declared of a cluster's clients: those that read from it, those that write to it, those that administer it.

Fields are called as Kafka calls them, with `_` for `.`. `declare` makes these values; they are read when a
connection is made. None leaves a thing as it is without a declaration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


@dataclass(frozen=True)
class LineSettings:
    """What connections that carry records have in common.

    Attributes:
        client_id: what brokers' logs and quotas see; None makes it of the flow and the task.
        request_timeout_ms: until a request without an answer closes its connection.
        send_buffer_bytes: of the socket; None leaves it to the system.
        receive_buffer_bytes: likewise.
        reconnect_backoff_ms: before the second attempt to connect; it doubles with each that fails.
        reconnect_backoff_max_ms: the most that it comes to.
        connections_max_idle_ms: after which an unused connection is closed.
        metadata_max_age_ms: after which metadata is requested again.
    """

    client_id: str | None = None
    request_timeout_ms: int = 4_000
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connections_max_idle_ms: int = 540_000
    metadata_max_age_ms: int = 300_000


@dataclass(frozen=True)
class ConsumerSettings(LineSettings):
    """Of tasks that read from the cluster.

    Attributes:
        fetch_max_bytes: the most that one fetch requests, which it does over a long line.
        max_partition_fetch_bytes: the most that it requests of one partition; None sets no bound of its own.
        fetch_max_wait_ms: for how long a broker may hold an answer back that would be empty, while records come.
    """

    fetch_max_bytes: int = 24 * 2**20
    max_partition_fetch_bytes: int | None = None
    fetch_max_wait_ms: int = 500


@dataclass(frozen=True)
class ProducerSettings(LineSettings):
    """Of tasks that write to the cluster.

    Attributes:
        max_request_size: the most bytes of batches in one request, unless one batch alone is larger; None fills
            requests up to 4 MiB, and the last batch may go beyond.
    """

    max_request_size: int | None = None


@dataclass(frozen=True)
class AdminSettings:
    """Of commands and drivers, which read and change metadata and write the internal topics.

    Attributes:
        client_id: as above; None is the library's own.
        request_timeout_ms: for how long they wait for an answer; None is what each of them usually waits.
    """

    client_id: str | None = None
    request_timeout_ms: int | None = None

    def patience(self, usual: float) -> float:
        """Return for how many seconds to wait for an answer that is usually waited for so long."""
        return usual if self.request_timeout_ms is None else self.request_timeout_ms / 1000


class Effective(NamedTuple):
    """One setting: whose, Kafka's name of it, its value, and where that is declared; empty where it is built in."""

    role: str
    key: str
    value: str | int | None
    place: str


@dataclass(frozen=True)
class Clients:
    """All of one cluster.

    Attributes:
        consumer: of tasks that read from it.
        producer: of tasks that write to it.
        admin: of commands and drivers.
        places: where values are declared, by role and key: `consumer.fetch.max.bytes`.
    """

    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    producer: ProducerSettings = field(default_factory=ProducerSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)
    places: tuple[tuple[str, str], ...] = ()

    @classmethod
    def declared(cls, values: Mapping[str, Any], places: Mapping[str, str]) -> Clients:
        """Return what values by role and key come to, as `consumer.fetch.max.bytes`; the others are built in."""
        made: dict[str, Any] = {
            role: kind(**{name: values[key] for name in _names(kind) if (key := f"{role}.{_key(name)}") in values})
            for role, kind in ROLES.items()
        }
        return cls(**made, places=tuple(sorted(places.items())))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Clients:
        """Read what `dataclasses.asdict` returned.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        made: dict[str, Any] = {role: kind(**value[role]) for role, kind in ROLES.items()}
        return cls(**made, places=tuple((key, place) for key, place in value["places"]))

    def effective(self) -> Iterator[Effective]:
        """Yield every setting."""
        places = dict(self.places)
        for role, kind in ROLES.items():
            for name in _names(kind):
                key = _key(name)
                yield Effective(role, key, getattr(getattr(self, role), name), places.get(f"{role}.{key}", ""))


ROLES: dict[str, type[ConsumerSettings] | type[ProducerSettings] | type[AdminSettings]] = {
    "consumer": ConsumerSettings,
    "producer": ProducerSettings,
    "admin": AdminSettings,
}


def _names(kind: type) -> list[str]:
    return [one.name for one in fields(kind)]


def _key(name: str) -> str:
    return name.replace("_", ".")
