"""`mm2.properties` converted: what each key becomes, which of several counts, and what cannot be converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.convert.conversion import convert
from reconciler.model.base.errors import DeclaredInputError
from tests.support.converting import HEARTBEATS, converted, lost

TWO = "clusters = a, b\na.bootstrap.servers = a.example:9092\nb.bootstrap.servers = b.example:9092\n"
ON = TWO + "a->b.enabled = true\n"
PASSWORD = "never-in-a-file"


def problem(folder: Path, text: str) -> str:
    path = folder / "mm2.properties"
    path.write_text(text)
    with pytest.raises(DeclaredInputError) as raised:
        convert([path])
    return "\n".join(str(one) for one in raised.value.problems).replace(f"{folder}/", "")


def test_three_data_centres_as_the_documentation_has_them(tmp_path: Path) -> None:
    aliases = ("west-1", "west-2", "east-1", "east-2", "north-1", "north-2")
    flows = ["west-1->west-2", "west-2->west-1", "east-1->east-2", "east-2->east-1", "north-1->north-2"]
    flows += ["north-2->north-1", "west-1->east-1", "west-1->north-1", "east-1->west-1", "east-1->north-1"]
    flows += ["north-1->west-1", "north-1->east-1"]
    text = "clusters: west-1, west-2, east-1, east-2, north-1, north-2\n"
    text += "".join(f"{alias}.bootstrap.servers = {alias}.example:9092\n" for alias in aliases)
    text += "# active/active in west\n" + "".join(f"{flow}.enabled = true\n" for flow in flows)
    topology, made = converted(tmp_path, text)
    assert {f"{flow.source}->{flow.target}" for flow in topology.flows} == set(flows)
    assert tuple(topology.clusters) == aliases
    assert lost(made) == {}


def test_the_names_of_the_first_draft(tmp_path: Path) -> None:
    topology, made = converted(
        tmp_path,
        """\
# mm2.properties
clusters = us-west, us-east
cluster.us-west.brokers.list = host1:9092
cluster.us-east.brokers.list = host2:9092
topics = .*
groups = .*
emit.checkpoints.interval.seconds = 10
cluster.us-west.offset.storage.topic = mm2-offsets
connector.us-west->us-east.emit.heartbeats = false
""",
    )
    (flow,) = topology.flows
    assert (flow.source, flow.target, flow.heartbeats) == ("us-west", "us-east", 0)
    assert topology.clusters["us-west"].bootstrap == ("host1:9092",)
    assert lost(made) == {"cluster.us-west.offset.storage.topic": "no Connect is needed"}


def test_what_a_flow_says_counts_before_what_all_say(tmp_path: Path) -> None:
    text = ON + "b->a.enabled = true\ntopics = all.*\na->b.topics = one, two.*\ntasks.max = 2\nb->a.tasks.max = 3\n"
    topology, made = converted(tmp_path, text + "groups = g\nrefresh.topics.interval.seconds = 30\n")
    one, other = sorted(topology.flows, key=lambda flow: flow.source)
    assert (one.topics.include, other.topics.include) == (("one", "two.*", HEARTBEATS), ("all.*", HEARTBEATS))
    assert (one.tasks, other.tasks) == (2, 3)
    # What both have alike stands once.
    assert made.text.count("groups:") == 1
    assert "defaults:" in made.text


def test_java_reads_properties_so(tmp_path: Path) -> None:
    text = (
        "! a comment\nclusters:a,\\\n      b\na.bootstrap.servers a.example:9092\n"
        "b.bootstrap.servers\t=\tfirst.example:9092\nb.bootstrap.servers=\\u0062.example:9092\n"
        "a->b.enabled:true\na->b.topics = orders\\\\..*,\\\n  payments\n"
    )
    topology, _ = converted(tmp_path, text)
    assert topology.clusters["b"].bootstrap == ("b.example:9092",)
    assert topology.flows[0].topics.include == (r"orders\..*", "payments", HEARTBEATS)


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        ("a->b.topics.blacklist = x", "topics.exclude", ("x",)),
        ("a->b.topics.exclude = x, y.*", "topics.exclude", ("x", "y.*")),
        ("replication.factor = 2", "replication_factor", 2),
        ("sync.topic.acls.enabled = false", "acls", False),
        ("a.consumer.isolation.level = read_committed", "isolation_level", "read_committed"),
        ("a->b.consumer.isolation.level = read_committed", "isolation_level", "read_committed"),
        ("b.producer.compression.type = gzip", "compression", "gzip"),
        ("a->b.producer.override.compression.type = lz4", "compression", "lz4"),
    ],
)
def test_a_setting_becomes_a_field(line: str, path: str, value: object, tmp_path: Path) -> None:
    topology, made = converted(tmp_path, f"{ON}{line}\n")
    found: object = topology.flows[0]
    for name in path.split("."):
        found = getattr(found, name)
    assert (found, lost(made)) == (value, {})
    assert f"# {line.split(' = ', maxsplit=1)[0]}, " in made.text


def test_defaults_of_mirror_maker_that_differ_are_written(tmp_path: Path) -> None:
    topology, _ = converted(tmp_path, ON)
    (flow,) = topology.flows
    assert (flow.groups.include, flow.heartbeats) == ((".*",), 1.0)
    topology, _ = converted(tmp_path, f"{ON}emit.checkpoints.enabled = false\nemit.heartbeats.enabled = false\n")
    (flow,) = topology.flows
    assert (flow.groups.include, flow.heartbeats) == ((), 0)


def test_secrets_become_references(tmp_path: Path) -> None:
    login = "org.apache.kafka.common.security.{}LoginModule required"
    text = f"""{ON}
a.security.protocol = SASL_SSL
a.sasl.mechanism = SCRAM-SHA-512
a.sasl.jaas.config = {login.format("scram.Scram")} username="mirror" password="{PASSWORD}";
a.ssl.truststore.location = /etc/kafka/trust.jks
a.ssl.truststore.password = {PASSWORD}
b.security.protocol = SASL_PLAINTEXT
b.sasl.mechanism = PLAIN
b.sasl.jaas.config = {login.format("plain.Plain")} username='${{env:B_USER}}' password="${{file:/etc/b.properties:pw}}";
"""
    topology, made = converted(tmp_path, text)
    one, other = topology.clusters["a"].security, topology.clusters["b"].security
    assert (str(one.password), str(one.username), str(one.ca)) == (
        "env:A_PASSWORD",
        "mirror",
        "file:/etc/kafka/trust.jks.ca.pem",
    )
    assert (str(other.username), str(other.password)) == ("env:B_USER", "file:/etc/b.properties#pw")
    assert PASSWORD not in made.text + str(made)
    assert any("A_PASSWORD" in line for line in made.todo)
    assert [line.split()[0] for line in made.todo if "trust.jks" in line] == ["keytool", "openssl"]


def test_every_kind_of_login(tmp_path: Path) -> None:
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required keyTab=/etc/m.keytab principal=m@EXAMPLE.COM;"
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    text = f"""{ON}
a.security.protocol = SASL_PLAINTEXT
a.sasl.jaas.config = {kerberos}
a.sasl.kerberos.service.name = broker
b.security.protocol = SASL_SSL
b.sasl.mechanism = OAUTHBEARER
b.sasl.jaas.config = {oauth} clientId="me" clientSecret="{PASSWORD}";
b.sasl.oauthbearer.token.endpoint.url = https://login.example/token
b.ssl.endpoint.identification.algorithm =
b.ssl.truststore.location = /etc/ca.pem
b.ssl.keystore.type = PEM
b.ssl.keystore.location = /etc/both
"""
    topology, made = converted(tmp_path, text)
    one, other = topology.clusters["a"].security, topology.clusters["b"].security
    assert (one.mechanism, one.kerberos and one.kerberos.service) == ("GSSAPI", "broker")
    assert other.oauth is not None
    assert (str(other.oauth.client_id), str(other.oauth.client_secret)) == ("me", "env:B_CLIENT_SECRET")
    assert (str(other.ca), str(other.certificate), other.verify_hostname) == (
        "file:/etc/ca.pem",
        "file:/etc/both",
        False,
    )
    assert PASSWORD not in made.text


def test_what_has_no_equal_is_listed_with_its_line_and_why(tmp_path: Path) -> None:
    text = ON + "some.thing = 1\na.consumer.max.poll.records = 5\na->b.consumer.fetch.max.bytes = 1048576\n"
    text += "b.producer.request.timeout.ms = 99999999\nb.producer.linger.ms = 5000\nb.consumer.group.id = x\n"
    _, made = converted(tmp_path, text)
    found = lost(made)
    assert "is known by this name" in found["some.thing"]
    assert "clusters.a.clients" in found["a->b.consumer.fetch.max.bytes"]
    assert "from 1000 to 300000" in found["b.producer.request.timeout.ms"]
    assert set(found) == {
        "some.thing",
        "a.consumer.max.poll.records",
        "a->b.consumer.fetch.max.bytes",
        "b.producer.request.timeout.ms",
        "b.producer.linger.ms",
        "b.consumer.group.id",
    }
    lines = {loss.setting.key: loss.setting.where.rpartition(":")[2] for loss in made.losses}
    assert lines["some.thing"] == "5"
    assert all(f"#   {key}: " in made.text for key in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\n", "mm2.properties: expected `clusters`"),
        (TWO, "mm2.properties:1 (clusters): no flow is enabled, so nothing is copied — add a->b.enabled = true"),
        (TWO + "a->c.enabled = true\n", "mm2.properties:4 (a->c.enabled): c is none of the clusters: a, b"),
        ("clusters = a, b\na.bootstrap.servers = a:1\na->b.enabled=true\n", "cluster b has no bootstrap.servers"),
        (TWO + "a->b.enabled = ja\n", "mm2.properties:4 (a->b.enabled): expected true or false"),
        (ON + "tasks.max = many\n", "mm2.properties:5 (tasks.max): expected a whole number"),
        (
            ON + "topics.exclude = x\ntopics.blacklist = y\n",
            "mm2.properties:6 (topics.blacklist): contradicts topics.exclude at mm2.properties:5",
        ),
        (ON + "topics = (?!internal).*\n", "mm2.properties:5 (topics): the expression (?!internal).* cannot be had"),
        (
            ON + "replication.policy.class = com.example.Ours\n",
            "mm2.properties:5 (replication.policy.class): topics are named by the class com.example.Ours",
        ),
        (
            ON + "b->a.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n",
            "[AB108]",
        ),
        (
            ON
            + "a.security.protocol=SASL_SSL\na.sasl.mechanism=PLAIN\na.sasl.jaas.config=com.example.Login required;\n",
            "mm2.properties:7 (a.sasl.jaas.config): the login module Login has no equal",
        ),
        (
            ON + "b.security.protocol=SASL_SSL\nb.sasl.mechanism=PLAIN\nb.sasl.jaas.config=${secrets:ns/x:jaas}\n",
            "no reference stands for ${secrets:…}",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(text: str, expected: str, tmp_path: Path) -> None:
    assert expected in problem(tmp_path, text)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("topics = orders\n", ("orders", HEARTBEATS)),
        ("topics = .*\n", (".*",)),
        ("topics = orders, heartbeats\n", ("orders", "heartbeats")),
        ("topics = orders\nreplication.policy.separator = _\n", ("orders", "(.*_)?heartbeats")),
        ("topics = orders\nheartbeats.replication.enabled = false\n", ("orders",)),
        ("a->b.heartbeats.replication.enabled = false\ntopics = orders\n", ("orders",)),
    ],
)
def test_heartbeats_are_copied_whatever_topics_has(more: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    topology, made = converted(tmp_path, ON + more)
    assert topology.flows[0].topics.include == expected
    assert lost(made) == {}
