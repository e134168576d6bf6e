"""Resources of Strimzi converted, in both of their shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from reconciler.convert.conversion import convert
from reconciler.model.base.errors import DeclaredInputError
from tests.support.converting import HEARTBEATS, converted, lost

BETA = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  version: 3.9.0
  replicas: 3
  connectCluster: target
  clusters:
  - alias: source
    bootstrapServers: source.example:9093
    tls:
      trustedCertificates:
      - secretName: source-ca
        certificate: ca.crt
    authentication:
      type: scram-sha-512
      username: mirror
      passwordSecret:
        secretName: source-user
        password: pw
  - alias: target
    bootstrapServers: target.example:9093
    tls: {}
    authentication:
      type: tls
      certificateAndKey: {secretName: target-user, certificate: user.crt, key: user.key}
    config:
      config.storage.replication.factor: 3
      producer.compression.type: lz4
  mirrors:
  - sourceCluster: source
    targetCluster: target
    sourceConnector:
      tasksMax: 4
      autoRestart: {enabled: true}
      config:
        replication.factor: -1
        sync.topic.acls.enabled: "false"
        replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
    checkpointConnector:
      config:
        sync.group.offsets.enabled: true
        replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
    topicsPattern: "orders.*|payments"
    groupsPattern: team-.*
  resources: {limits: {memory: 2Gi}}
"""
LATEST = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  target:
    alias: target
    bootstrapServers: target.example:9092
    groupId: mirror
  mirrors:
  - source:
      alias: source
      bootstrapServers: source.example:9092
    sourceConnector: {tasksMax: 2}
    topicsExcludePattern: secret.*
"""


def test_the_former_shape(tmp_path: Path) -> None:
    topology, made = converted(tmp_path, BETA, "mirror.yaml")
    (flow,) = topology.flows
    assert (flow.source, flow.target, flow.tasks, flow.replication_factor) == ("source", "target", 4, -1)
    assert flow.compression == "lz4"
    assert (flow.topics.include, flow.groups.include) == (("orders.*|payments", HEARTBEATS), ("team-.*",))
    assert (flow.acls, flow.groups.sync_offsets, flow.policy.kind, flow.heartbeats) == (False, True, "identity", 0)
    source, target = (topology.clusters[alias].security for alias in ("source", "target"))
    assert (source.protocol, source.mechanism, str(source.username)) == ("SASL_SSL", "SCRAM-SHA-512", "mirror")
    assert str(source.password) == "file:/etc/kafka-secrets/source-user/pw"
    assert str(source.ca) == "file:/etc/kafka-secrets/source-ca/ca.crt"
    assert (target.protocol, str(target.key)) == ("SSL", "file:/etc/kafka-secrets/target-user/user.key")
    assert [line for line in dict.fromkeys(made.todo)] == [
        f"mount the Secret {name} at /etc/kafka-secrets/{name}" for name in ("source-ca", "source-user", "target-user")
    ]
    assert {loss.setting.title for loss in made.losses} == {
        "spec.replicas",
        "spec.resources",
        "spec.mirrors[0].sourceConnector.autoRestart",
        "spec.clusters[1].config.config.storage.replication.factor",
    }
    assert "  # spec.mirrors[0].topicsPattern, " in made.text


def test_the_shape_of_now(tmp_path: Path) -> None:
    topology, made = converted(tmp_path, LATEST, "mirror.yaml")
    (flow,) = topology.flows
    assert (flow.tasks, flow.topics.exclude, flow.groups.include) == (2, ("secret.*",), ())
    assert set(lost(made)) == {"groupId"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "sourceCluster: source",
            "sourceCluster: other",
            "mirror.yaml:32 (spec.mirrors[0].sourceCluster): other is none",
        ),
        ("  mirrors:\n", "  mirrors: 1\n  was:\n", "(spec.mirrors): expected a list of mirrors"),
        ("    sourceConnector:\n", "    otherConnector:\n", "(spec.mirrors[0]): nothing copies"),
        (
            "      type: scram-sha-512",
            "      type: none-such",
            "(spec.clusters[0].authentication.type): the authentication",
        ),
        ("        password: pw\n", "", "(spec.clusters[0].authentication.passwordSecret.password): expected a plain"),
        ("kind: KafkaMirrorMaker2", "kind: Kafka", "expected kind: KafkaMirrorMaker2"),
        ("spec:\n", "spec: [\n", "[AB140]"),
        (
            "bootstrapServers: source.example:9093",
            "x: y",
            "(spec.clusters[0].bootstrapServers): expected a plain value",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(old: str, new: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "mirror.yaml"
    path.write_text(BETA.replace(old, new, 1))
    with pytest.raises(DeclaredInputError) as raised:
        convert([path])
    assert expected in str(raised.value).replace(f"{tmp_path}/", "")


def with_login(login: str) -> str:
    """Return the resource whose source logs in in another way."""
    begin = BETA.index("    authentication:\n      type: scram-sha-512")
    return BETA[:begin] + f"    authentication: {login}\n" + BETA[BETA.index("  - alias: target") :]


def test_a_login_by_oauth_names_the_endpoint_and_keeps_the_secret_where_it_is(tmp_path: Path) -> None:
    login = (
        "{type: oauth, tokenEndpointUri: 'https://idp.example/token', clientId: mirror, scope: kafka, audience: x, "
        "clientSecret: {secretName: oauth, key: secret}}"
    )
    (tmp_path / "mirror.yaml").write_text(with_login(login))
    made = convert([tmp_path / "mirror.yaml"])
    security = YAML(typ="safe").load(made.text)["clusters"]["source"]["security"]
    assert (security["protocol"], security["mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
    assert security["oauth"] == {
        "token-endpoint": "https://idp.example/token",
        "client-id": "mirror",
        "client-secret": "file:/etc/kafka-secrets/oauth/secret",
        "scope": "kafka",
    }
    assert "audience" in lost(made)
    assert "mount the Secret oauth at /etc/kafka-secrets/oauth" in made.todo


def test_a_login_of_the_users_own_is_that_of_its_configuration(tmp_path: Path) -> None:
    login = (
        "{type: custom, sasl: true, config: {sasl.mechanism: SCRAM-SHA-256, sasl.jaas.config: "
        '\'ScramLoginModule required username="mirror" password="${directory:/etc/kafka-secrets/x:pw}";\'}}'
    )
    (tmp_path / "mirror.yaml").write_text(with_login(login))
    made = convert([tmp_path / "mirror.yaml"])
    security = YAML(typ="safe").load(made.text)["clusters"]["source"]["security"]
    assert (security["protocol"], security["mechanism"]) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (security["username"], security["password"]) == ("mirror", "file:/etc/kafka-secrets/x/pw")


def test_a_login_by_a_token_of_its_own_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(with_login("{type: oauth, accessToken: {secretName: a, key: b}}"))
    with pytest.raises(DeclaredInputError, match="without tokenEndpointUri") as raised:
        convert([tmp_path / "mirror.yaml"])
    assert "mirror.yaml:" in str(raised.value)
