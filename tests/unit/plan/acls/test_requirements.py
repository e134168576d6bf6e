"""What `explain --acls` says, from the declaration to the three ways it is written."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.main import main
from reconciler.model.acls.requirements import PURPOSES, Acl, ResourcePattern, without_surplus
from reconciler.model.names.own_names import SHARED_NAMES, probe_prefix, state_names
from reconciler.plan.acls.own_bindings import own_bindings
from reconciler.plan.acls.requirements import needed_acls
from tests.unit.declare.declaring import HEAD, load

SECURED = HEAD.replace(
    '["b1.a.example:9092"]}',
    '["b1.a.example:9092"], security: '
    '{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: "o\'hara", password: "env:NEVER_SET"}}',
)


def needs(folder: Path, fields: str, alias: str = "b", purpose: str = "replicate") -> dict[str, set[str]]:
    """Return what flow a-b needs, by resource, and under `optional` by what it can do without."""
    topology = load(folder, HEAD + "flows: [{from: a, to: b, topics: {include: [orders]}" + fields + "}]\n")
    found: dict[str, set[str]] = {}
    for acl in needed_acls(topology, topology.flows):
        if (acl.alias, acl.purpose) == (alias, purpose):
            kept = f"optional {acl.pattern.name}" if acl.is_optional else acl.pattern.name
            found.setdefault(kept, set()).add(acl.operation)
    return found


JOURNALS = {
    "anabranch.shop.status.internal": {"READ", "WRITE"},
    "anabranch.shop.control.internal": {"READ", "WRITE"},
    "anabranch.shop.copies.internal": {"READ", "WRITE"},
    "anabranch.shop.owned.internal": {"READ"},
}
COPY = {"a.orders": {"READ", "WRITE"}, "anabranch.shop.a-b": {"READ"}}
IDS = {"anabranch.shop.a-b.": {"WRITE"}}
SYNCS = "mm2-offset-syncs.a.internal"


def required(needed: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: operations for name, operations in needed.items() if not name.startswith("optional ")}


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ("", IDS),
        (", offsets: identical", IDS),
        (", fill: markers", {**IDS, "kafka-cluster": {"ALTER"}}),
        (", fill: transactions", IDS),
        (", fill: markers, start: latest", {**IDS, SYNCS: {"CREATE", "WRITE"}}),
        (", fill: markers, offsets: translated", {**IDS, SYNCS: {"CREATE", "WRITE"}}),
        (", offsets: translated", {**IDS, SYNCS: {"CREATE", "WRITE"}}),
        (", start: latest", {**IDS, SYNCS: {"CREATE", "WRITE"}}),
        (", delivery: at-least-once", {SYNCS: {"CREATE", "WRITE"}}),
        (", dlq: letters", {**IDS, "letters": {"WRITE"}}),
    ],
)
def test_a_target_needs_what_the_mode_asks_for(tmp_path: Path, fields: str, more: dict[str, set[str]]) -> None:
    assert required(needs(tmp_path, fields)) == {**JOURNALS, **COPY, **more}


def test_what_is_optional_depends_on_the_mode_too(tmp_path: Path) -> None:
    auto = needs(tmp_path, "")
    assert auto["optional a.orders"] == {"DESCRIBE_CONFIGS", "DELETE"}
    assert auto["optional kafka-cluster"] == {"ALTER"}
    assert auto[f"optional {SYNCS}"] == {"CREATE", "READ", "WRITE", "ALTER_CONFIGS"}
    identical = needs(tmp_path, ", offsets: identical, fill: transactions")
    assert f"optional {SYNCS}" not in identical
    assert "optional kafka-cluster" not in identical
    begun = needs(tmp_path, ", fill: markers, delivery: at-least-once")
    assert begun["optional kafka-cluster"] == {"ALTER"}, "copies that were begun with identical offsets have gaps"
    repeating = needs(tmp_path, ", delivery: at-least-once, offsets: translated")
    assert {name for name in repeating if name.startswith("optional ")} == {
        "optional a.orders",
        f"optional {SYNCS}",
    }


def test_applying_makes_and_changes_and_looks_but_copies_nothing(tmp_path: Path) -> None:
    assert required(needs(tmp_path, ", dlq: letters", purpose="apply")) == {
        "a.orders": {"READ", "WRITE", "CREATE", "ALTER", "ALTER_CONFIGS"},
        "anabranch.shop.a-b": {"READ"},
        **IDS,
        "letters": {"DESCRIBE"},
        "anabranch.shop.owned.internal": {"CREATE", "READ", "WRITE"},
        **{name: {"CREATE", "DESCRIBE"} for name in JOURNALS if "owned" not in name},
    }
    originals = {"orders": {"READ", "DESCRIBE_CONFIGS"}}
    assert needs(tmp_path, "", "a", "apply") == originals | {"optional kafka-cluster": {"DESCRIBE", "DESCRIBE_CONFIGS"}}
    assert needs(tmp_path, ", acls: false", "a", "apply") == originals
    assert needs(tmp_path, "", "a") == {"orders": {"READ"}, "optional orders": {"DESCRIBE_CONFIGS"}}


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ("", {"optional anabranch.shop.a-b": {"DESCRIBE"}, f"optional {SYNCS}": {"READ"}}),
        (", offsets: identical", {}),
        (", delivery: at-least-once", {"optional anabranch.shop.a-b": {"DESCRIBE"}, f"optional {SYNCS}": {"READ"}}),
    ],
)
def test_verifying_only_reads(tmp_path: Path, fields: str, more: dict[str, set[str]]) -> None:
    assert needs(tmp_path, fields, purpose="verify") == {
        "a.orders": {"READ"},
        "optional a.orders": {"DESCRIBE_CONFIGS"},
        "anabranch.shop.owned.internal": {"READ"},
        "anabranch.shop.copies.internal": {"READ"},
        **more,
    }
    assert needs(tmp_path, fields, "a", "verify") == {"orders": {"READ"}, "optional orders": {"DESCRIBE_CONFIGS"}}


def test_what_verifying_needs_is_not_granted_to_the_replicator(tmp_path: Path) -> None:
    """Whoever verifies is a person: the replicator does not."""
    _, at_target = own(tmp_path, 'principal: "User:mirror", optional: true', ", delivery: at-least-once")
    assert f"User:mirror WRITE on topic {SYNCS}" in at_target
    assert f"User:mirror READ on topic {SYNCS}" not in at_target


def test_what_another_one_gives_is_left_out() -> None:
    def acl(operation: str, pattern: ResourcePattern, optional: bool = False, flow: str = "x") -> Acl:
        return Acl("a", "apply", "topic", pattern, operation, optional, "", (flow,))

    orders, prefix = ResourcePattern("orders"), ResourcePattern("ord", prefixed=True)
    read = acl("READ", orders)
    assert without_surplus([acl("DESCRIBE", orders), read, acl("READ", orders, True, "y")]) == (
        Acl("a", "apply", "topic", orders, "READ", False, "", ("x", "y")),
    )
    assert without_surplus([read, acl("READ", prefix)]) == (acl("READ", prefix),)
    # What is optional may be withheld, so it gives nothing.
    assert without_surplus([read, acl("READ", prefix, True)]) == (read, acl("READ", prefix, True))


def test_acls_of_many_flows_are_not_held_against_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Acl] = []
    gives = Acl.gives

    def counted(one: Acl, other: Acl) -> bool:
        compared.append(one)
        return gives(one, other)

    monkeypatch.setattr(Acl, "gives", counted)
    many = [Acl("b", "apply", "topic", ResourcePattern(f"t{n}"), "READ", False, "x", ("f",)) for n in range(1000)]
    assert without_surplus(many) == tuple(many)
    assert len(without_surplus([*many, replace(many[0], pattern=ResourcePattern("t", True))])) == 1
    assert len(compared) <= 2 * len(many)


_PATTERNS = st.builds(ResourcePattern, st.text("ab*", max_size=3), st.booleans())
_ACLS = st.builds(
    Acl,
    alias=st.sampled_from("xy"),
    purpose=st.sampled_from(PURPOSES),
    kind=st.sampled_from(("topic", "group")),
    pattern=_PATTERNS,
    operation=st.sampled_from(("READ", "WRITE", "DESCRIBE")),
    is_optional=st.booleans(),
    why=st.just(""),
    flows=st.just(("f",)),
)


@given(st.lists(_ACLS, max_size=12))
def test_what_is_left_out_is_given_and_nothing_that_is_left_is(acls: list[Acl]) -> None:
    left = without_surplus(acls)
    assert all(any(one.gives(acl) for one in left) for acl in acls)
    assert not any(one.gives(other) for one in left for other in left if one is not other)


def test_it_is_written_for_people_for_programs_and_as_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.yaml"
    flows = "replication: [{active-active: [a, b], topics: {include: ['orders.*'], exclude: ['.*-tmp']}}]\n"
    file.write_text(SECURED + flows + "flows: [{from: a, to: c, enabled: false}]\n")

    assert main(["explain", "--acls", str(file)]) == 0
    text = capsys.readouterr().out
    assert "cluster a   User:o'hara" in text
    assert "cluster b   User:REPLICATOR" in text
    assert "no user is declared" in text
    assert "flow a-b: ACLs have no regular expressions: orders.* became orders* (prefixed)" in text
    assert "cluster c" not in text

    assert main(["explain", "--acls", str(file), "--format", "json", "--flow", "a-b"]) == 0
    (a, b) = json.loads(capsys.readouterr().out)
    assert (a["cluster"], a["principal"], b["principal"]) == ("a", "User:o'hara", "User:REPLICATOR")
    assert a["acls"][0] == {
        "purpose": "replicate",
        "optional": False,
        "resource": "topic",
        "name": "orders",
        "pattern": "prefixed",
        "operation": "READ",
        "why": "originals",
        "flows": ["a-b"],
    }
    assert {flow for acl in b["acls"] for flow in acl["flows"]} == {"a-b"}

    assert main(["explain", "--acls", str(file), "--format", "commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines.count("# to verify"), lines.count("# to verify, optional")) == (2, 2)
    commands = [shlex.split(line) for line in lines if line.startswith("kafka-acls.sh ")]
    wanted = ["--add", "--allow-principal", "User:o'hara", "--operation", "Read", "--operation", "DescribeConfigs"]
    assert [*wanted, "--topic", "orders", "--resource-pattern-type", "prefixed"] in [one[5:] for one in commands]
    assert not any("--cluster" in one for one in commands), "what is optional is commented out"
    assert any(line.startswith("# kafka-acls.sh") and line.endswith("--operation Alter --cluster") for line in lines)

    assert main(["explain", str(file), "--format", "commands"]) == 2
    assert "--acls alone" in " ".join(capsys.readouterr().err.split())


def own(folder: Path, replicator: str, fields: str = "") -> tuple[set[str], set[str]]:
    """Return what an apply allows the replicator of cluster a, and of cluster b, in words."""
    told = HEAD.replace('example:9092"]}', 'example:9092"], replicator: {' + replicator + "}}")
    topology = load(folder, told + "flows: [{from: a, to: b, topics: {include: [orders]}" + fields + "}]\n")
    first, second = ({str(one) for one in own_bindings(topology, alias)} for alias in ("a", "b"))
    return first, second


def test_an_apply_allows_the_replicator_what_is_needed_and_nothing_twice(tmp_path: Path) -> None:
    mirror = 'principal: "User:mirror"'
    at_source, at_target = own(tmp_path, f"{mirror}, reconcile: false", ", offsets: identical, fill: transactions")
    assert at_source == {"User:mirror READ on topic orders"}
    assert at_target == {
        *(f"User:mirror {one} on topic a.orders" for one in ("READ", "WRITE")),
        *(f"User:mirror {one} on topic {name}" for name in JOURNALS for one in JOURNALS[name]),
        "User:mirror READ on group anabranch.shop.a-b",
        "User:mirror WRITE on transactional-id anabranch.shop.a-b.* (prefixed)",
    }
    more_at_source, more_at_target = own(tmp_path, mirror, ", offsets: identical, fill: transactions")
    assert more_at_source - at_source == {"User:mirror DESCRIBE_CONFIGS on topic orders"}
    # ALTER_CONFIGS gives DESCRIBE_CONFIGS, READ gives DESCRIBE.
    assert more_at_target - at_target == {
        *(f"User:mirror {one} on topic a.orders" for one in ("CREATE", "ALTER", "ALTER_CONFIGS")),
        *(f"User:mirror CREATE on topic {name}" for name in JOURNALS),
        "User:mirror WRITE on topic anabranch.shop.owned.internal",
    }
    assert own(tmp_path, mirror, ", enabled: false") == (set(), set())


def test_the_cluster_itself_is_only_given_by_name(tmp_path: Path) -> None:
    for fields, expected in (("", False), (", optional: true", True)):
        for found in own(tmp_path, f'principal: "User:mirror"{fields}'):
            assert any("on cluster" in one for one in found) is expected


def test_commands_are_for_whom_the_cluster_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "named.yaml"
    told = HEAD.replace('a.example:9092"]}', 'a.example:9092"], replicator: {principal: "User:CN=mirror"}}')
    path.write_text(told + "flows: [{from: a, to: b}]\n")
    assert main(["explain", str(path), "--acls", "--format", "json"]) == 0
    assert [one["principal"] for one in json.loads(capsys.readouterr().out)] == ["User:CN=mirror", "User:REPLICATOR"]


def test_taking_groups_along_needs_them_described_and_their_topics_written(tmp_path: Path) -> None:
    groups = ', groups: {include: [billing, "ship.*"]'
    at_source = needs(tmp_path, groups + "}", "a")
    assert {name: at_source[name] for name in ("billing", "ship")} == {"billing": {"DESCRIBE"}, "ship": {"DESCRIBE"}}
    at_target = needs(tmp_path, groups + "}")
    without = needs(tmp_path, "")
    more = {name: found for name, found in at_target.items() if without.get(name) != found}
    assert more == {
        "anabranch.shop.a-b:groups": {"READ"},
        "a.checkpoints.internal": {"CREATE", "READ", "WRITE"},
        "heartbeats": {"CREATE", "WRITE"},
    }
    synced = needs(tmp_path, groups + ", sync-offsets: true}")
    assert {name: synced[name] for name in ("billing", "ship")} == {"billing": {"READ"}, "ship": {"READ"}}


def test_heartbeats_without_groups_need_their_topic_and_the_turn(tmp_path: Path) -> None:
    without = needs(tmp_path, "")
    more = {name: found for name, found in needs(tmp_path, ", heartbeats: true").items() if without.get(name) != found}
    assert more == {"anabranch.shop.a-b:groups": {"READ"}, "heartbeats": {"CREATE", "WRITE"}}


def test_a_group_is_described_by_its_own_name_whatever_it_matches(tmp_path: Path) -> None:
    at_source = needs(tmp_path, ", groups: {include: ['a|b', 'x[1]']}", "a")
    assert {name for name in at_source if at_source[name] == {"DESCRIBE"}} >= {"a|b", "a", "b", "x"}


def test_between_waves_somebody_reads_when_groups_were_looked_at(tmp_path: Path) -> None:
    groups = ", groups: {include: [billing]}"
    assert "heartbeats" not in {name.removeprefix("optional ") for name in needs(tmp_path, "", purpose="apply")}
    assert "heartbeats" not in {name.removeprefix("optional ") for name in needs(tmp_path, groups, purpose="apply")}
    flows = "flows: [{from: a, to: b" + groups + "}, {from: a, to: c" + groups + "}]\n"
    waves = "datacenters: {first: {wave: 1}}\n"
    topology = load(tmp_path, HEAD.replace('b.example:9092"]', 'b.example:9092"], datacenter: first') + waves + flows)
    found = {
        (acl.alias, acl.purpose, acl.operation): acl.is_optional
        for acl in needed_acls(topology, topology.flows)
        if acl.pattern.name in ("heartbeats", "anabranch.shop.status.internal") and acl.operation != "DESCRIBE"
    }
    wanted = {
        ("replicate", "CREATE"),
        ("replicate", "WRITE"),
        ("replicate", "READ"),
        ("apply", "CREATE"),
        ("apply", "READ"),
    }
    # Everybody writes heartbeats: what is believed stands in the topology's own topic.
    assert found == {(alias, *one): False for alias in ("b", "c") for one in wanted}


def test_where_journals_are_still_shared_these_are_needed(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD + "flows: [{from: a, to: b, topics: {include: [orders]}, groups: {include: [x]}}]\n")
    own_names, shared_names = (
        {(acl.pattern.name, acl.operation, acl.purpose) for acl in needed_acls(topology, topology.flows, shared)}
        for shared in ((), ("b",))
    )
    gone = {name for name, _, _ in own_names - shared_names}
    assert gone == {*state_names("shop"), probe_prefix("shop")}
    assert {name for name, _, _ in shared_names - own_names} == {
        *SHARED_NAMES,
        "anabranch.internal.probe.",
        "heartbeats",
    }
    assert (SHARED_NAMES.owned, "WRITE", "replicate") in shared_names
    assert (state_names("shop").owned, "WRITE", "replicate") not in own_names


@pytest.mark.parametrize(("waves", "reads"), [("", set()), ("datacenters: {first: {wave: 1}}\n", {"b", "c"})])
def test_between_waves_somebody_reads_how_flows_are(tmp_path: Path, waves: str, reads: set[str]) -> None:
    flows = "flows: [{from: a, to: b}, {from: a, to: c}]\n"
    topology = load(tmp_path, HEAD.replace('b.example:9092"]', 'b.example:9092"], datacenter: first') + waves + flows)
    found = [
        acl for acl in needed_acls(topology, topology.flows) if acl.pattern.name == "anabranch.shop.status.internal"
    ]
    read = {acl.alias for acl in found if (acl.purpose, acl.operation, acl.is_optional) == ("apply", "READ", False)}
    assert read == reads
