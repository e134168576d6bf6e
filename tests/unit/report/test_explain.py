"""What becomes of single topics, and which line says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.declare.documents.settings import BUILT_IN
from reconciler.model.names.selection import Selection
from reconciler.report.clients import clients_text, clients_told
from reconciler.report.explain import explained, explained_text
from tests.support.security.policy_classes import offer
from tests.unit.declare.declaring import HEAD, HEAD_LINES, load

BODY = r"""policy:
  type: rename
  rules:
    - {from: '^orders\.(.*)$', to: 'dc1-\1'}
    - {from: 'long(.*)', to: 'LONG\1'}
replication:
  - active-active: [a, b]
    topics: {exclude: ["tmp-.*"]}
flows:
  - {from: a, to: c, policy: {type: identity}, topics: {include: [users]}, enabled: false}
""".replace("LONG", "l" * 248)
TOPICS = ("orders.eu", "users", "b.users", "c.users", "heartbeats", "tmp-x", "__x", "long", "longer")


def test_each_topic_is_told_with_its_copy_and_what_says_so(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD + BODY)
    text = explained_text(explained(topology, topology.flows[:1], TOPICS, {})).plain.replace(f"{tmp_path}/", "")
    lines = [" ".join(line.split()).replace("l" * 248, "L") for line in text.splitlines()]
    assert lines == [
        f"a → b flow a-b policy rename 0.yaml:{HEAD_LINES + 4}:5 (policy.rules)",
        "topic copy why",
        f"orders.eu → dc1-eu rule 0.yaml:{HEAD_LINES + 4}:7 (policy.rules[0])",
        "users → a.users no rule matches: default",
        "b.users not copied it came through b",
        "c.users → a.c.users no rule matches: default; it came through c",
        "heartbeats → a.heartbeats heartbeats have their prefix",
        "tmp-x not copied excluded: tmp-.*",
        "__x not copied never taken: __.*",
        f"long → L rule 0.yaml:{HEAD_LINES + 5}:7 (policy.rules[1])",
        lines[-1],
    ]
    assert lines[-1].startswith("longer not copied longer of a would be called")
    assert lines[-1].endswith("its name has 250 characters, Kafka allows 249")


def test_json_has_the_same_for_the_chosen_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(HEAD + BODY)
    assert (
        main(["explain", str(file), "--flow", "a-c", "--topic", "users", "--topic", "orders", "--format", "json"]) == 0
    )
    (flow,) = json.loads(capsys.readouterr().out)
    assert (flow["name"], flow["enabled"], flow["policy"]) == ("a-c", False, "identity")
    assert flow["topics"] == [
        {"topic": "users", "remote": "users", "why": "policy identity", "hops": []},
        {"topic": "orders", "remote": None, "why": "matches none of users", "hops": []},
    ]
    assert main(["explain", str(file), "--flow", "nope"]) == 2
    assert "there are a-b, b-a, a-c" in " ".join(capsys.readouterr().err.split())


def test_a_class_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, choosy="Choosy")
    topology = load(tmp_path, HEAD + "policy: {type: class, class: choosy}\nflows: [{from: a, to: b}]\n")
    (flow,) = explained(topology, topology.flows, ("orders", "bad"), {})
    assert [(fate["remote"], fate["why"]) for fate in flow["topics"]] == [
        ("copy-of-orders", "class choosy"),
        (None, "policy class choosy fails at remote_topic('a', 'bad'): LookupError: no rule for bad"),
    ]


@pytest.mark.parametrize("name", ["orders", "users", "tmp-x", "__x", "x.replica", "else"])
def test_something_stands_against_exactly_what_is_not_chosen(name: str) -> None:
    chosen = Selection(("orders", "users", "tmp.*", "x.*", "__x"), ("tmp-x",))
    assert (chosen.against(name) is None) is chosen.matches(name)


CLIENTS = """version: 1
name: shop
defaults: {clients: {consumer: {fetch.max.bytes: 8MiB}, producer: {client.id: writes}}}
clusters:
  a: {bootstrap: b1.a.example:9092}
  b:
    bootstrap: b1.b.example:9092
    clients: {consumer: {fetch.max.bytes: 1MiB}}
  c: {bootstrap: b1.c.example:9092}
flows: [{from: a, to: b}, {from: b, to: a, name: back}]
"""


def test_each_setting_of_clients_is_told_with_what_says_so(tmp_path: Path) -> None:
    topology = load(tmp_path, CLIENTS)
    text = clients_text(clients_told(topology, topology.flows)).plain.replace(f"{tmp_path}/", "")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert [line for line in lines if line.endswith(("consumer", "producer", "admin"))] == [
        *("a consumer", "a producer", "a admin", "b consumer", "b producer", "b admin"),
    ]
    assert [line for line in lines if line.startswith("fetch.max.bytes")] == [
        'fetch.max.bytes 8388608 0.yaml:3:50 (defaults.clients.consumer["fetch.max.bytes"])',
        'fetch.max.bytes 1048576 0.yaml:8:43 (clusters.b.clients.consumer["fetch.max.bytes"])',
    ]
    assert [line for line in lines if line.startswith("client.id")] == [
        "client.id a name of its own for each client built in",
        'client.id writes 0.yaml:3:79 (defaults.clients.producer["client.id"])',
        "client.id a name of its own for each client built in",
    ] * 2
    assert lines.count("fetch.max.wait.ms 500 built in") == 2


def test_json_has_the_clients_of_the_chosen_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(CLIENTS)
    assert main(["explain", str(file), "--clients", "--flow", "a-b", "--format", "json"]) == 0
    told = {(one["cluster"], one["role"]): one["settings"] for one in json.loads(capsys.readouterr().out)}
    assert list(told) == [("a", "consumer"), ("a", "admin"), ("b", "producer"), ("b", "admin")]
    assert told["b", "admin"] == [
        {"key": "client.id", "value": None, "place": ""},
        {"key": "request.timeout.ms", "value": None, "place": ""},
    ]
    assert {"key": "request.timeout.ms", "value": 4000, "place": ""} in told["a", "consumer"]


def test_acls_and_clients_are_two_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(CLIENTS)
    assert main(["explain", str(file), "--acls", "--clients"]) == 2
    assert main(["explain", str(file), "--acls", "--topic", "orders"]) == 2
    assert main(["explain", str(file), "--clients", "--topic", "orders"]) == 2
    assert "either --acls or --clients" in capsys.readouterr().err


FIELDS = """defaults: {quota: 50MB/s, linger: 5ms}
replication:
  - active-active: [a, b]
    topics: {exclude: ["tmp-.*"]}
flows:
  - {from: a, to: b, tasks: 4}
"""


def test_every_field_that_counts_is_told_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(HEAD + FIELDS)
    assert main(["explain", str(file), "--flow", "a-b"]) == 0
    lines = [" ".join(line.split()).replace(f"{tmp_path}/", "") for line in capsys.readouterr().out.splitlines()]
    line = HEAD_LINES
    for told in (
        "field value from",
        f"tasks 4 shop.yaml:{line + 6}:29 (flows[0].tasks)",
        f"quota 50MB/s shop.yaml:{line + 1}:19 (defaults.quota)",
        f'topics.exclude ["tmp-.*"] shop.yaml:{line + 4}:23 (replication[0].topics.exclude)',
        "partitions as many as the original has built in",
        "batch-size 256KiB built in",
        "acls true built in",
    ):
        assert told in lines, (told, lines)
    assert main(["explain", str(file), "--flow", "b-a", "--format", "json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)
    known = {one["field"]: one for one in flow["fields"]}
    assert (known["tasks"]["value"], known["tasks"]["place"]) == (1, "")
    assert known["linger"]["place"].endswith("(defaults.linger)")


def test_no_field_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(HEAD + FIELDS)
    assert main(["explain", str(file), "--format", "json"]) == 0
    for flow in json.loads(capsys.readouterr().out):
        assert {one["field"] for one in flow["fields"]} == set(BUILT_IN)
    # Topics are what is asked about, where some are named.
    assert main(["explain", str(file), "--topic", "orders"]) == 0
    assert "batch-size" not in capsys.readouterr().out
