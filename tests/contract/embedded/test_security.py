"""A secured embedded cluster: passwords are checked, ACLs bite, and no log tells a password."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import ClusterOptions, EmbeddedCluster

ANSWER_SECONDS = 120
# Every character that JAAS or a properties file gives a meaning to.
ODD_PASSWORD = 'pa"ss\\word = #1; \u00e9\u6f22'
USERS = {"admin": "admin-secret", "alice": ODD_PASSWORD}


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


def test_wrong_password_is_refused(secured: EmbeddedCluster) -> None:
    refusals: list[KafkaError] = []
    config = {**secured.client_config("alice"), "sasl.password": "wrong", "log_level": "0"}
    client = AdminClient({**config, "error_cb": refusals.append})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)
    client.poll(ANSWER_SECONDS)
    assert KafkaError._AUTHENTICATION in {refusal.code() for refusal in refusals}


def test_first_user_may_do_everything(secured: EmbeddedCluster, topic_name: str) -> None:
    _create_topic(secured, "admin", topic_name)
    assert topic_name in AdminClient(secured.client_config()).list_topics(timeout=ANSWER_SECONDS).topics


def test_other_user_may_do_what_acls_allow(secured: EmbeddedCluster, topic_name: str) -> None:
    with pytest.raises(KafkaException) as caught:
        _create_topic(secured, "alice", topic_name)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    allow = AclBinding(
        ResourceType.TOPIC,
        topic_name,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.CREATE,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient(secured.client_config())
    admin.create_acls([allow])[allow].result(ANSWER_SECONDS)
    _create_topic(secured, "alice", topic_name)
    assert topic_name in admin.list_topics(timeout=ANSWER_SECONDS).topics


def test_passwords_stay_out_of_logs_and_reach(secured: EmbeddedCluster) -> None:
    broker = secured.broker()
    log = broker.log()
    assert "Kafka Server started" in log
    assert not any(password in log for password in ("admin-secret", 'pa"ss', "word = #1"))
    assert "admin-secret" not in repr(secured.options)
    assert (broker.folder / "server.properties").stat().st_mode & 0o077 == 0


def _create_topic(cluster: EmbeddedCluster, user: str, topic: str) -> None:
    admin = AdminClient(cluster.client_config(user))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(ANSWER_SECONDS)
