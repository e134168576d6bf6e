"""What librdkafka's reports mean: a login that was refused, and one that was cut short by a broker that ended."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.clients import Reports
from reconciler.state.confluent.faults import no_connection

WEST = Cluster("west", ("127.0.0.1:9092",), security=Security("SASL_PLAINTEXT", mechanism="PLAIN", username="admin"))
AT = "sasl_plaintext://127.0.0.1:9092/bootstrap: SASL"
FAILURE = KafkaError(KafkaError._TRANSPORT)


def reported(code: int, text: str) -> Reports:
    reports = Reports()
    reports.errors.append(KafkaError(code, f"{AT} {text} (after 18ms in state AUTH_HANDSHAKE)"))
    return reports


@pytest.mark.parametrize(
    "text",
    [
        "PLAIN mechanism handshake failed: Local: Broker transport failure: broker's supported mechanisms: (n/a)",
        "PLAIN mechanism handshake failed: Local: Timed out: broker's supported mechanisms: (n/a)",
        "authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure",
        "authentication error: SaslAuthenticateRequest failed: Local: Broker handle destroyed without termination",
    ],
)
def test_a_login_that_was_cut_short_is_no_refusal(text: str) -> None:
    reports = reported(KafkaError._AUTHENTICATION, text)
    assert not reports.not_let_in
    found = no_connection(WEST, FAILURE, tuple(reports.errors))
    assert isinstance(found, Unreachable)
    assert found.problems[0].code == "AB310"
    assert "127.0.0.1:9092: SASL" in found.problems[0].message


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            KafkaError._AUTHENTICATION,
            "PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: supported mechanisms: GSSAPI",
        ),
        (KafkaError._AUTHENTICATION, "authentication error: Authentication failed: Invalid username or password"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "authentication error"),
    ],
)
def test_a_login_that_a_broker_refuses_is_one(code: int, text: str) -> None:
    reports = reported(code, text)
    assert reports.not_let_in
    found = no_connection(WEST, FAILURE, tuple(reports.errors))
    assert isinstance(found, EnvironmentFault)
    assert not isinstance(found, Unreachable)
    assert found.problems[0].code == "AB312"
