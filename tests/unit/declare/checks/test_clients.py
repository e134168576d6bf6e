"""Settings of clients: what wins, what is refused, and which field says what somebody meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.model.declared.clients import AdminSettings, Clients, ConsumerSettings, ProducerSettings
from tests.unit.declare.declaring import load, place, refused

FILE = """\
version: 1
name: shop
{defaults}clusters:
  a:
    bootstrap: b1.a.example:9092
    clients: {own}
  b: {{bootstrap: b1.b.example:9092}}
flows: [{{from: a, to: b}}]
"""


def file(own: str, general: str = "") -> str:
    return FILE.format(own=own, defaults=f"defaults:\n  clients: {general}\n" if general else "")


def values(clients: Clients) -> Clients:
    return replace(clients, places=())


def test_what_is_written_is_meant(tmp_path: Path) -> None:
    own = (
        "{consumer: {client.id: reads, request.timeout.ms: 5000, fetch.max.bytes: 8MiB, fetch.max.wait.ms: 200,"
        " max.partition.fetch.bytes: 1 MB, send.buffer.bytes: 64KiB, receive.buffer.bytes: 1048576,"
        " reconnect.backoff.ms: 100, reconnect.backoff.max.ms: 2000,"
        " connections.max.idle.ms: 60000, metadata.max.age.ms: 30000},"
        " producer: {max.request.size: 70000B, client.id: writes},"
        " admin: {client.id: admins, request.timeout.ms: 9000}}"
    )
    clients = load(tmp_path, file(own)).clusters["a"].clients
    assert values(clients) == Clients(
        ConsumerSettings("reads", 5_000, 65_536, 1_048_576, 100, 2_000, 60_000, 30_000, 8 * 2**20, 1_000_000, 200),
        ProducerSettings("writes", max_request_size=70_000),
        AdminSettings("admins", 9_000),
    )


def test_a_cluster_wins_key_by_key_and_each_value_knows_its_line(tmp_path: Path) -> None:
    general = "{consumer: {fetch.max.bytes: 6MB, request.timeout.ms: 8000}, admin: {client.id: shop}}"
    clusters = load(tmp_path, file("{consumer: {fetch.max.bytes: 2MB}}", general)).clusters
    usual = Clients(ConsumerSettings(request_timeout_ms=8_000, fetch_max_bytes=6_000_000), admin=AdminSettings("shop"))
    assert values(clusters["b"].clients) == usual
    assert values(clusters["a"].clients) == replace(usual, consumer=replace(usual.consumer, fetch_max_bytes=2_000_000))
    said = {alias: dict(cluster.clients.places) for alias, cluster in clusters.items()}
    lines = {alias: {key: where.split(":")[1] for key, where in places.items()} for alias, places in said.items()}
    shared = {"admin.client.id": "4", "consumer.request.timeout.ms": "4"}
    assert lines == {"a": shared | {"consumer.fetch.max.bytes": "8"}, "b": shared | {"consumer.fetch.max.bytes": "4"}}
    assert said["a"]["consumer.fetch.max.bytes"].endswith('(clusters.a.clients.consumer["fetch.max.bytes"])')


def test_what_holds_for_all_may_stand_in_another_file(tmp_path: Path) -> None:
    general = "version: 1\ndefaults: {clients: {producer: {max.request.size: 1MB}}}\n"
    clusters = load(tmp_path, file("{}"), general).clusters
    assert [cluster.clients.producer.max_request_size for cluster in clusters.values()] == [1_000_000] * 2


def test_the_example_of_the_reference_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "topology.md").read_text(encoding="utf-8")
    example = page.partition("### Settings of clients")[2].partition("```yaml")[2].partition("```")[0]
    clusters = load(tmp_path, f"version: 1\nname: shop\n{example}flows: [{{from: us-east, to: eu-west}}]\n").clusters
    assert clusters["us-east"].clients.consumer.fetch_max_bytes == 48 * 2**20
    assert clusters["eu-west"].clients.admin.request_timeout_ms == 60_000
    assert {cluster.clients.producer.client_id for cluster in clusters.values()} == {"mirror"}


def test_clusters_of_which_nothing_is_said_have_what_is_built_in(tmp_path: Path) -> None:
    assert load(tmp_path, file("{}")).clusters["b"].clients == Clients()


@pytest.mark.parametrize("role", ["consumer", "producer", "admin"])
@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("isolation.level", "`isolation-level` of flows"),
        ("compression.type", "`compression` of flows"),
        ("linger.ms", "`linger` of flows"),
        ("fetch.min.bytes", "`linger` of flows"),
        ("batch.size", "`batch-size` of flows"),
        *((key, "`delivery` of flows") for key in ("acks", "enable.idempotence", "transactional.id")),
        ("auto.offset.reset", "`start` of flows"),
        ("client.rack", "`rack` of the cluster"),
        ("bootstrap.servers", "`bootstrap` of the cluster"),
        ("security.protocol", "`security.protocol` of the cluster"),
        ("sasl.mechanism", "`security.mechanism` of the cluster"),
        ("ssl.keystore.location", "`security.certificate` or `security.key` of the cluster"),
        ("ssl.truststore.password", "`security.ca` of the cluster"),
        ("ssl.anything", "`security` of the cluster"),
    ],
)
def test_what_has_a_field_of_its_own_is_refused_with_its_name(tmp_path: Path, role: str, key: str, field: str) -> None:
    (problem,) = refused(tmp_path, file(f"{{{role}: {{{key}: secret-or-not}}}}"))
    assert (problem.code, problem.message) == ("AB103", f"{key} is declared elsewhere: by {field}")
    assert problem.remedy == f"remove it, and use {field}"
    assert place(problem, tmp_path).startswith("0.yaml:6:")
    assert place(problem, tmp_path).endswith(f'(clusters.a.clients.{role}["{key}"])'.replace('["acks"]', ".acks"))
    assert "secret" not in str(problem)


@pytest.mark.parametrize(
    "key",
    ["group.id", "retries", "retry.backoff.ms", "session.timeout.ms", "default.api.timeout.ms", "max.poll.records"],
)
def test_a_setting_that_has_no_meaning_here_says_why_and_names_no_other(tmp_path: Path, key: str) -> None:
    (problem,) = refused(tmp_path, file("{}", f"{{consumer: {{{key}: 1}}}}"))
    assert (problem.code, problem.remedy) == ("AB103", "remove it")
    assert problem.message.startswith(f"{key} has no field here: ")


@pytest.mark.parametrize("key", ["groups", "anything", "x.y.z"])
def test_any_other_key_is_refused_with_those_that_are_honoured(tmp_path: Path, key: str) -> None:
    (problem,) = refused(tmp_path, file("{}", f"{{producer: {{{key}: 1}}}}"))
    assert problem.code == "AB103"
    assert problem.message == (
        "expected one of client.id, request.timeout.ms, max.request.size, send.buffer.bytes, receive.buffer.bytes, "
        "reconnect.backoff.ms, reconnect.backoff.max.ms, connections.max.idle.ms or metadata.max.age.ms; "
        f"found {key}"
    )


def test_a_misspelt_key_is_told_with_what_was_meant(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, file("{consumer: {fetch.maxbytes: 1MB}}"))
    assert problem.remedy == "did you mean fetch.max.bytes?"


def test_what_may_be_half_of_a_password_is_not_shown(tmp_path: Path) -> None:
    login, rest = refused(tmp_path, file("{consumer: {sasl.jaas.config: password=hunter1, hunter2: }}"))
    assert login.message.startswith("sasl.jaas.config is declared elsewhere: by `security.username`, ")
    assert "hunter" not in f"{login} {rest}"
    assert rest.message.endswith("found another key, not shown: it may be part of a secret")


@pytest.mark.parametrize("key", ["consumer", "producer", "admin", "overrides"])
def test_where_settings_of_clients_stand(tmp_path: Path, key: str) -> None:
    document = file("{}") + f"{key}: {{}}\n"
    (problem,) = refused(tmp_path, document)
    assert problem.remedy == "remove it, and use `clients` of a cluster, or of defaults"


@pytest.mark.parametrize(
    ("role", "key", "size", "least", "most"),
    [
        ("consumer", "fetch.max.bytes", "999MB", 65_536, 52_428_800),
        ("consumer", "max.partition.fetch.bytes", "1B", 16_384, 52_428_800),
        ("producer", "max.request.size", "1KiB", 65_536, 104_857_600),
        ("producer", "receive.buffer.bytes", "65 MiB", 4_096, 67_108_864),
    ],
)
def test_a_size_with_a_unit_has_limits_as_well(
    tmp_path: Path, role: str, key: str, size: str, least: int, most: int
) -> None:
    (problem,) = refused(tmp_path, file("{}", f"{{{role}: {{{key}: {size}}}}}"))
    assert problem.message == f"expected a size from {least} to {most} bytes; found '{size}'"
    assert place(problem, tmp_path).startswith("0.yaml:4:")


@pytest.mark.parametrize(
    ("own", "general", "line", "said", "remedy"),
    [
        (
            "{consumer: {fetch.max.wait.ms: 3500}}",
            "",
            6,
            "consumer.fetch.max.wait.ms of cluster a is 3500, and request.timeout.ms 4000: answers would come too late",
            "let request.timeout.ms be at least 4500",
        ),
        (
            "{producer: {reconnect.backoff.max.ms: 500}}",
            "{producer: {reconnect.backoff.ms: 900}}",
            8,
            "producer.reconnect.backoff.ms of cluster a is 900, and reconnect.backoff.max.ms 500: "
            "it would never be waited for so long",
            "let reconnect.backoff.max.ms be at least 900",
        ),
        (
            "{}",
            "{consumer: {request.timeout.ms: 20000, connections.max.idle.ms: 20000}}",
            4,
            "consumer.request.timeout.ms of cluster a is 20000, and connections.max.idle.ms 20000: "
            "connections would be closed while they wait",
            "let connections.max.idle.ms be at least 20001",
        ),
        (
            "{consumer: {max.partition.fetch.bytes: 8MiB, fetch.max.bytes: 8388607}}",
            "",
            6,
            "consumer.max.partition.fetch.bytes of cluster a is 8388608, and fetch.max.bytes 8388607: "
            "no fetch request is that large",
            "let fetch.max.bytes be at least 8388608",
        ),
    ],
)
def test_what_does_not_go_together_is_told_once(
    tmp_path: Path, own: str, general: str, line: int, said: str, remedy: str
) -> None:
    (problem,) = refused(tmp_path, file(own, general))
    assert (problem.code, problem.message, problem.remedy) == ("AB104", said, remedy)
    assert place(problem, tmp_path).startswith(f"0.yaml:{line}:")
