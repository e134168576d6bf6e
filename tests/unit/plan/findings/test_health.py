"""What `doctor` makes of what it finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.acls.requirements import Acl, Purpose, ResourceKind, ResourcePattern
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.planning.health import BrokerSeen, ClockSeen, Machine, Rights
from reconciler.model.recorded.capabilities import REQUIRED, Capabilities, Capability, ProbeFinding, Verdict
from reconciler.plan.findings import health

WEST = Cluster("west", ("w:9092",), security=Security(username="mirror"))
MACHINE = Machine((3, 11, 4), "/bin/python", None, 4)


@pytest.mark.parametrize(
    ("machine", "level", "said"),
    [
        (MACHINE, "ok", "Python 3.11.4, /bin/python"),
        (replace(MACHINE, workers="/bin/python"), "ok", "Python 3.11.4"),
        (replace(MACHINE, workers="python3"), "warning", "PYSPARK_PYTHON names python3"),
        (replace(MACHINE, python=(3, 10, 9)), "failure", "Python 3.10.9"),
        (replace(MACHINE, python=(4, 0, 0)), "ok", "Python 4.0.0"),
    ],
)
def test_the_interpreter_must_be_new_enough_and_the_workers_own(machine: Machine, level: str, said: str) -> None:
    check = health.interpreter(machine)
    assert check.level == level
    assert said in check.found
    assert bool(check.remedy) is (level != "ok")


@pytest.mark.parametrize(("cores", "level"), [(5, "ok"), (4, "warning")])
def test_more_tasks_than_cores_are_warned_of(cores: int, level: str) -> None:
    flows = [Flow(name, "east", "west", Selection(("x",)), tasks=tasks) for name, tasks in (("a", 2), ("b", 3))]
    check = health.slots(flows, cores)
    assert (check.level, check.found) == (
        level,
        f"5 tasks of 2 flows; replicate runs Spark as local[5,8]; {cores} cores here",
    )


def test_a_broker_that_nobody_reaches_is_named() -> None:
    seen = [BrokerSeen(1, "w:9092"), BrokerSeen(2, "inside:9092", "Name or service not known")]
    assert health.brokers(WEST, seen[:1]).found == "1 answer: w:9092"
    check = health.brokers(WEST, seen)
    assert (check.level, check.found) == (
        "failure",
        "broker 2 advertises inside:9092: Name or service not known",
    )
    assert "advertised.listeners" in check.remedy


TOKENS = OAuth(token_endpoint="http://login.example/token", client_id="c", client_secret=Reference("env", "S"))


@pytest.mark.parametrize(
    ("security", "bootstrap", "seen", "said"),
    [
        (Security("SSL"), "w:9092", "w:9092", ""),
        (Security("SASL_SSL", "PLAIN"), "w:9092", "w:9092", ""),
        (Security(), "127.0.0.1:9092", "localhost:9092", ""),
        (Security("SSL", verify_hostname=False), "w:1", "w:1", "TLS, without host names verified"),
        (Security(), "w:9092", "w:9092", "PLAINTEXT: records, settings and ACLs go in clear to w:9092"),
        (Security(), "[::1]:1", "w:9092", "PLAINTEXT: records, settings and ACLs go in clear to w:9092"),
        (Security("SASL_PLAINTEXT", "SCRAM-SHA-512"), "w:1", "w:1", "SASL_PLAINTEXT: records, settings and ACLs go in"),
        (Security("SASL_PLAINTEXT", "PLAIN"), "w:1", "w:1", "SASL_PLAINTEXT: the password, records, settings and ACLs"),
        (
            Security("SASL_SSL", "OAUTHBEARER", oauth=TOKENS),
            "w:1",
            "w:1",
            "the client's secret goes in clear to http://l",
        ),
    ],
)
def test_what_goes_in_clear_to_another_machine_is_warned_of(
    security: Security, bootstrap: str, seen: str, said: str
) -> None:
    check = health.encryption(Cluster("west", (bootstrap,), security=security), [BrokerSeen(1, seen)])
    assert check.level == ("warning" if said else "ok")
    assert check.found.startswith(said)
    assert bool(check.remedy) is bool(said)


@pytest.mark.parametrize(
    ("seen", "level", "said"),
    [
        (ClockSeen(0.25, 0.01), "ok", "0.250 s ahead of this machine's, ± 0.010 s"),
        (ClockSeen(-1.2, 0.3), "ok", "1.200 s behind this machine's"),
        (ClockSeen(-1.2, 0.1), "warning", "1.200 s behind"),
        (ClockSeen(90.0, 0.1), "warning", "90.000 s ahead"),
        (ClockSeen(why_not="no quorum"), "warning", "cannot be determined: no quorum"),
    ],
)
def test_clocks_that_differ_for_certain_are_warned_of(seen: ClockSeen, level: str, said: str) -> None:
    check = health.clock(WEST, seen)
    assert check.level == level
    assert said in check.found


def acl(
    kind: ResourceKind, pattern: ResourcePattern, operation: str, purpose: Purpose = "replicate", optional: bool = False
) -> Acl:
    return Acl("west", purpose, kind, pattern, operation, optional, "", ("f",))


def test_what_is_not_allowed_is_named_and_weighed() -> None:
    copies = ResourcePattern("east.", prefixed=True)
    acls = [
        acl("topic", copies, "READ"),
        acl("topic", copies, "WRITE"),
        acl("topic", copies, "DELETE", optional=True),
        acl("group", ResourcePattern("g"), "READ"),
        acl("cluster", ResourcePattern("kafka-cluster"), "ALTER"),
        acl("topic", ResourcePattern("absent"), "WRITE"),
        acl("topic", copies, "CREATE", "apply"),
        acl("topic", ResourcePattern("letters"), "DESCRIBE", "apply"),
    ]
    allowed: dict[tuple[ResourceKind, str], frozenset[str] | None] = {
        ("topic", "east.a"): frozenset({"READ", "DESCRIBE"}),
        ("topic", "east.b"): None,
        ("topic", "letters"): frozenset({"WRITE"}),
        ("group", "g"): frozenset({"READ"}),
        ("cluster", "kafka-cluster"): frozenset({"CLUSTER_ACTION"}),
    }
    replicate, apply = health.permissions(WEST, acls, Rights(allowed))
    assert (replicate.what, replicate.level) == ("cluster west: permissions to replicate", "failure")
    assert replicate.found == "user mirror lacks WRITE on topic east.a"
    assert "explain --acls" in replicate.remedy
    assert (apply.level, apply.found) == ("warning", "user mirror lacks CREATE on topic east.a")

    allowed["topic", "east.a"] = frozenset({"READ", "WRITE", "CREATE"})
    allowed["group", "g"] = frozenset()
    replicate, apply = health.permissions(WEST, acls, Rights(allowed))
    assert (replicate.level, replicate.found) == ("failure", "user mirror lacks READ on group g")
    allowed["group", "g"] = frozenset({"READ"})
    replicate, apply = health.permissions(WEST, acls, Rights(allowed))
    assert (replicate.level, apply.level) == ("ok", "ok")
    said = "user mirror has all permissions that are needed on what exists"
    silent = f"{said}; the cluster does not report topic east.b"
    assert replicate.found == f"{silent}; without what is optional: DELETE on topic east.a"
    assert apply.found == silent
    allowed["topic", "east.b"] = allowed["topic", "east.a"]
    assert [one.found for one in health.permissions(WEST, acls, Rights(allowed))][1:] == [said]


def findings(**verdicts: Verdict) -> Capabilities:
    return Capabilities(
        "id", 1.0, tuple(ProbeFinding(one, verdicts.get(one.name, Verdict.HOLDS), "seen") for one in Capability)
    )


@pytest.mark.parametrize(
    ("found", "has_transactions", "level", "said"),
    [
        (None, True, "ok", "nothing else was tried yet"),
        (None, False, "failure", "no transactions"),
        (findings(), True, "ok", "filled by markers or transactions"),
        (findings(MARKERS=Verdict.REFUSED), True, "ok", "filled by transactions"),
        (findings(MARKERS=Verdict.REFUSED, TRANSACTIONS=Verdict.REFUSED), True, "warning", "no way"),
        (findings(SEQUENCE=Verdict.FAILS), True, "failure", "sequence: seen"),
    ],
)
def test_a_target_must_do_what_identical_offsets_rest_on(
    found: Capabilities | None, has_transactions: bool, level: str, said: str
) -> None:
    check = health.capabilities(WEST, found, has_transactions)
    assert check.level == level
    assert said in check.found


@pytest.mark.parametrize("verdict", [Verdict.FAILS, Verdict.HOLDS])
def test_a_target_of_translated_copies_alone_need_not_hold_identical_ones(verdict: Verdict) -> None:
    found = Capabilities("id", 1.0, tuple(ProbeFinding(one, verdict, "tried") for one in REQUIRED))
    check = health.capabilities(WEST, found, True, takes_identical=False)
    assert (check.level, check.found) == ("ok", "transactions, and translated offsets need nothing else")
    assert health.capabilities(WEST, found, False, takes_identical=False).level == "failure"
    assert health.capabilities(WEST, found, True).level != "ok"


def test_slots_elsewhere_are_counted_when_tasks_start() -> None:
    flows = [Flow("a", "east", "west", Selection(("x",)), tasks=9)]
    check = health.slots(flows, 1, "spark://m:7077")
    assert (check.level, check.found) == ("ok", "9 tasks of 1 flow, on spark://m:7077; counted at the start")
