"""How a cluster is reached: references to secrets, and one table that maps `security:` to both Kafka clients.

`declare` makes these values; whoever opens a connection asks for client settings here. A secret's value is looked up at
that moment, lives in the returned mapping alone, and is never part of a `repr`, a specification or a message.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from reconciler.model.errors import EnvironmentFault, Problem

Protocol = Literal["PLAINTEXT", "SASL_PLAINTEXT"]
Mechanism = Literal["PLAIN"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
MECHANISMS: tuple[str, ...] = get_args(Mechanism)

_REFERENCE = re.compile(r"env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>/\S+)")


@dataclass(frozen=True)
class SecretRef:
    """A place where one secret value is kept: an environment variable or a file.

    Attributes:
        scheme: `env` or `file`.
        name: the variable's name, or the file's absolute path.
    """

    scheme: Literal["env", "file"]
    name: str

    @classmethod
    def parse(cls, text: str) -> SecretRef:
        """Read `env:NAME` or `file:/absolute/path`.

        Raises:
            ValueError: the text is neither; it is not repeated in the message, as it may be the secret itself.
        """
        found = _REFERENCE.fullmatch(text)
        if found is None:
            message = "not a reference: expected env:NAME or file:/absolute/path"
            raise ValueError(message)
        if found["env"]:
            return cls("env", found["env"])
        return cls("file", found["file"])

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}"

    def resolve(self, where: str) -> str:
        """Return the secret's value.

        Args:
            where: whose secret it is, for the error.

        Raises:
            EnvironmentFault: AB304, the variable is unset or the file cannot be read.
        """
        if self.scheme == "env":
            value = os.environ.get(self.name)
            if value is None:
                raise EnvironmentFault(
                    Problem("AB304", where, f"environment variable {self.name} is not set", f"set {self.name}")
                )
            return value
        try:
            return Path(self.name).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            reason = error.strerror
        except UnicodeDecodeError:
            reason = "it is not UTF-8 text"
        raise EnvironmentFault(
            Problem("AB304", where, f"cannot read {self.name}: {reason}", "create it or correct the path")
        )


@dataclass(frozen=True)
class Security:
    """How clients authenticate to a cluster."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: str | None = None
    password: SecretRef | None = None


# One table for both clients: what each calls protocol, mechanism, username and password.
_LIBRDKAFKA = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
_KAFKA_PYTHON = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")


def librdkafka_settings(security: Security, where: str) -> dict[str, str]:
    """Return the settings that confluent-kafka needs for `security`.

    Raises:
        EnvironmentFault: AB304, a secret cannot be resolved.
    """
    return _settings(security, where, _LIBRDKAFKA)


def kafka_python_settings(security: Security, where: str) -> dict[str, str]:
    """Return the settings that kafka-python's connections need for `security`.

    Raises:
        EnvironmentFault: AB304, a secret cannot be resolved.
    """
    return _settings(security, where, _KAFKA_PYTHON)


def _settings(security: Security, where: str, names: tuple[str, str, str, str]) -> dict[str, str]:
    protocol, mechanism, username, password = names
    settings: dict[str, str] = {protocol: security.protocol}
    if security.mechanism is not None:
        settings[mechanism] = security.mechanism
        settings[username] = security.username or ""
        settings[password] = security.password.resolve(where) if security.password else ""
    return settings
