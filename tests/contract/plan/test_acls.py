"""What `explain --acls` prints is enough, and nothing of it too much: users who are allowed exactly that do the work.

The journals are made here for the first time, so the test of `apply` runs first. Both sides are one cluster; names keep
them apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Producer

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.acls.requirements import IMPLIED, Acl, Purpose
from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.observe.topology import observe
from reconciler.operate.flows.following import growing
from reconciler.plan.acls.requirements import needed_acls
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.driver import new_run
from reconciler.replicator.driver.preparation import prepare
from reconciler.replicator.driver.refresh import Refresh
from reconciler.replicator.partition.shares import Place, Shares
from reconciler.replicator.transfer.pace import Quota
from reconciler.state.journals.topics import own
from reconciler.verify import work
from reconciler.verify.slices import SliceProgress
from reconciler.verify.survey import Survey, VerifyFilter
from tests.support.clusters.kafka import (
    ANSWER_SECONDS,
    create,
    delete,
    delete_records,
    grow,
    set_config,
)
from tests.support.replicator.announced import announced
from tests.support.replicator.copying import Running, fill, identical
from tests.support.replicator.translated import assert_in_order, committed
from tests.support.security.acls import as_user, give, take

SOURCE, TARGET = "north", "south"
MODES: dict[str, dict[str, object]] = {
    "markers": {"offsets": "identical", "fill": "markers"},
    "transactions": {"offsets": "identical", "fill": "transactions"},
    "translated": {"offsets": "translated"},
    "repeating": {"delivery": "at-least-once"},
}
USERS = {
    user: f"{user}-secret"
    for user in (
        *("admin", "planner", "whole", "padder", "postman"),
        *(f"{mode}{more}" for mode in MODES for more in ("", "-less", "-auditor")),
    )
}
RECORDS = 30


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper().replace('-', '_')}_PASSWORD", password)


def topology(broker: EmbeddedCluster, user: str, name: str, include: Sequence[str], **fields: object) -> Topology:
    flow = replace(Flow("north-south", SOURCE, TARGET, Selection(tuple(include))), **fields)  # type: ignore[arg-type]
    return Topology(name, {alias: as_user(alias, broker, user) for alias in (SOURCE, TARGET)}, (flow,))


def needed(one: Topology, purpose: Purpose, optional: bool = False) -> list[Acl]:
    return [a for a in needed_acls(one, one.flows) if a.purpose == purpose and (optional or not a.is_optional)]


def apply(one: Topology) -> list[str]:
    """Plan and apply; return what was refused."""
    try:
        outcome = DirectProvisioner(one).apply(build_plan(one, observe(one, [TARGET]), [TARGET]))
    except AnabranchError as error:
        return [str(problem) for problem in error.problems]
    return [str(failure.problem) for failure in outcome.failed]


def transact(broker: EmbeddedCluster, topic: str, records: int = RECORDS) -> None:
    """Write records in two transactions, one of them aborted: a source with gaps."""
    producer = Producer(broker.client_config() | {"transactional.id": f"tests-{topic}", "log_level": "2"})
    producer.init_transactions(ANSWER_SECONDS)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, b"%d" % number, partition=0)
        end(ANSWER_SECONDS)


def leave_behind(broker: EmbeddedCluster, topic: str) -> None:
    """Write what a run leaves that dies before its first commit: records that were never committed."""
    producer = Producer(broker.client_config() | {"transactional.id": f"tests-{topic}", "log_level": "2"})
    producer.init_transactions(ANSWER_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"lost", partition=0)
    producer.flush(ANSWER_SECONDS)
    producer.abort_transaction(ANSWER_SECONDS)


@dataclass
class Run:
    """One run without Spark and without its reconcile loop: what its user was told, and what its task was dealt."""

    spec: FlowSpec
    overseer: Cluster
    warned: list[str]
    places: list[Place]

    @classmethod
    def begin(cls, one: Topology, broker: EmbeddedCluster) -> Run:
        """Do what the driver does before Spark starts.

        Raises:
            AnabranchError: the user is refused what a run cannot do without.
        """
        (flow,) = one.flows
        warned: list[str] = []
        spec = FlowSpec.compile(one, flow, new_run())
        overseer = as_user(TARGET, broker, "admin")
        prepare(spec.target, spec.topology, [flow], warned.append)
        warned += map(str, discovery.hidden(spec, {place.topic for place in discovery.matching(spec)}))
        Refresh(spec, growing(one, make=False), warned.append, warned.append).look()
        found = announced(overseer, spec.seal)
        shares = Shares() if found is None else Shares.from_json(found)
        return cls(spec, overseer, warned, list(shares.of(0)))

    def copy(self, until: Callable[[TaskStatus], bool] | None = None) -> TaskStatus:
        with Running(self.spec, self.places, self.overseer) as copying:
            return copying.wait(until)

    @property
    def overseen(self) -> FlowSpec:
        source = replace(self.overseer, alias=SOURCE)
        return replace(self.spec, source=source, target=self.overseer)


def names(said: str, user: str, acl: Acl) -> bool:
    """Tell whether words say who is not allowed what on which resource of which cluster."""
    operations = {acl.operation, IMPLIED.get(acl.operation, acl.operation)}
    resource = "cluster" if acl.kind == "cluster" else acl.pattern.name
    return (
        f"user {user} " in said
        and f"cluster {acl.alias} (" in said
        and resource in said
        and any(f"{operation} " in said for operation in operations)
    )


def test_apply_needs_each_of_its_acls_and_no_other(secured: EmbeddedCluster, topic_name: str) -> None:
    one = topology(secured, "planner", topic_name, [topic_name], fill="markers", dlq=f"{topic_name}-letters")
    create(secured, f"{topic_name}-letters")
    create(secured, topic_name)
    # First what makes the topic that says what is ours: later its loss would be another trouble.
    owned = own(one.name).owned.name
    acls = sorted(needed(one, "apply"), key=lambda acl: (acl.operation != "CREATE", acl.pattern.name != owned))
    give(secured, "planner", acls)
    missed, partitions = [], itertools.count(2)
    for acl in acls:
        take(secured, "planner", acl)
        if acl.operation == "CREATE" and acl.pattern.name != owned:
            delete(secured, acl.pattern.name)
        elif acl.operation == "ALTER" or (acl.operation, acl.pattern.name) == ("WRITE", owned):
            grow(secured, topic_name, next(partitions))
        said = apply(one)
        if not any(names(words, "planner", acl) for words in said):
            missed.append((acl, said))
        give(secured, "planner", [acl])
        if acl.operation == "CREATE":
            assert apply(one) == []
    assert missed == []
    assert apply(one) == []
    set_config(secured, topic_name, "retention.ms", "1234567")
    assert [type(step).__name__ for step in plan_steps(one)] == ["AlterConfig"]
    assert apply(one) == []
    assert plan_steps(one) == ()


def plan_steps(one: Topology) -> Sequence[object]:
    return build_plan(one, observe(one, [TARGET]), [TARGET]).steps


@pytest.mark.parametrize("mode", MODES)
def test_copying_needs_no_more_than_what_is_printed(secured: EmbeddedCluster, topic_name: str, mode: str) -> None:
    """The topics are declared by a regular expression; what is optional is not granted."""
    create(secured, topic_name, 2)
    assert apply(topology(secured, "admin", topic_name, [topic_name], **MODES[mode])) == []
    one = topology(secured, mode, topic_name, [f"{topic_name}.*"], **MODES[mode])
    give(secured, mode, needed(one, "replicate"))
    fill(secured, topic_name, RECORDS, 2)
    transact(secured, topic_name)
    run = Run.begin(one, secured)
    status = run.copy()
    assert [(part.state, part.reason) for part in status.partitions] == [(PartitionState.RUNNING, None)] * 2
    if mode in ("markers", "transactions"):
        assert identical(run.overseen, topic_name) == 2 * RECORDS
    else:
        assert assert_in_order(run.overseen, topic_name, 2) == 2 * RECORDS


def test_a_copy_whose_first_run_died_begins_without_what_is_optional(secured: EmbeddedCluster, topic_name: str) -> None:
    """Something was written to it, nothing is remembered of it, and the offset syncs may not be read."""
    first = f"{topic_name}-first"
    for topic in (first, topic_name):
        create(secured, topic)
        fill(secured, topic, RECORDS)
    beside = topology(secured, "admin", topic_name, [first], **MODES["translated"])
    assert apply(beside) == []
    # There are offset syncs from now on.
    Run.begin(beside, secured).copy()
    assert apply(topology(secured, "admin", topic_name, [topic_name], **MODES["translated"])) == []
    one = topology(secured, "translated", topic_name, [topic_name], **MODES["translated"])
    give(secured, "translated", needed(one, "replicate"))
    leave_behind(secured, f"{SOURCE}.{topic_name}")
    run = Run.begin(one, secured)
    assert [(part.state, part.reason) for part in run.copy().partitions] == [(PartitionState.RUNNING, None)]
    assert assert_in_order(run.overseen, topic_name) == RECORDS


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        pytest.param("markers", "", id="markers", marks=pytest.mark.long),
        pytest.param("translated", "mm2-offset-syncs transactional-id", id="translated"),
    ],
)
def test_copying_needs_each_of_its_acls(secured: EmbeddedCluster, topic_name: str, mode: str, kept: str) -> None:
    """Those that other modes need as well are taken away in one mode alone."""
    user = f"{mode}-less"
    create(secured, topic_name)
    assert apply(topology(secured, "admin", topic_name, [topic_name], **MODES[mode])) == []
    one = topology(secured, user, topic_name, [topic_name], **MODES[mode])
    acls = needed(one, "replicate")
    give(secured, user, acls)
    missed, records = [], 0
    for acl in acls:
        if kept and not any(word in f"{acl.kind} {acl.pattern.name}" for word in kept.split()):
            continue
        take(secured, user, acl)
        if acl.operation == "CREATE":
            delete(secured, syncs_topic(SOURCE))
        if acl.kind == "cluster":
            transact(secured, topic_name, 3)
        else:
            fill(secured, topic_name, 3)
        records += 3

        def is_said(status: TaskStatus, acl: Acl = acl) -> bool:
            return any(names(str(part.reason), user, acl) for part in status.partitions)

        try:
            run = Run.begin(one, secured)
            if not any(names(words, user, acl) for words in run.warned):
                run.copy(is_said)
        except AnabranchError as error:
            if not names(str(error), user, acl):
                missed.append((acl, str(error)))
        give(secured, user, [acl])
    assert missed == []
    run = Run.begin(one, secured)
    status = run.copy()
    assert [part.reason for part in status.partitions] == [None]
    assert assert_in_order(run.overseen, topic_name) == records


def test_with_what_is_optional_nothing_is_warned_of_and_late_logs_are_padded(
    secured: EmbeddedCluster, topic_name: str
) -> None:
    create(secured, topic_name)
    fill(secured, topic_name, RECORDS)
    delete_records(secured, topic_name, RECORDS // 2)
    assert apply(topology(secured, "admin", topic_name, [topic_name])) == []
    one = topology(secured, "padder", topic_name, [topic_name])
    give(secured, "padder", needed(one, "replicate", optional=True))
    run = Run.begin(one, secured)
    assert run.warned == []
    assert [part.reason for part in run.copy().partitions] == [None]
    assert identical(run.overseen, topic_name) == RECORDS - RECORDS // 2


def test_dead_letters_need_write_on_their_topic(secured: EmbeddedCluster, topic_name: str) -> None:
    letters = f"{topic_name}-letters"
    create(secured, letters)
    create(secured, topic_name)
    assert apply(topology(secured, "admin", topic_name, [topic_name])) == []
    set_config(secured, f"{SOURCE}.{topic_name}", "max.message.bytes", "1000")
    one = topology(secured, "postman", topic_name, [topic_name], dlq=letters)
    acls = needed(one, "replicate")
    (write,) = [acl for acl in acls if acl.pattern.name == letters]
    give(secured, "postman", [acl for acl in acls if acl != write])
    with pytest.raises(AnabranchError) as refused:
        Run.begin(one, secured)
    assert names(str(refused.value), "postman", write)
    give(secured, "postman", [write])
    producer = Producer(secured.client_config() | {"log_level": "2"})
    producer.produce(topic_name, bytes(range(256)) * 20, partition=0)
    assert producer.flush(ANSWER_SECONDS) == 0
    Run.begin(one, secured).copy()
    assert len(committed(as_user(TARGET, secured, "admin"), letters)) == 1


def audited(one: Topology) -> tuple[list[str], int]:
    """Compare as `verify` does; return what was refused, and how many records were found to be the same.

    Raises:
        AssertionError: something differs.
    """
    spec, said = FlowSpec.compile(one, one.flows[0], "verify"), list[str]()
    try:
        found = Survey(spec, VerifyFilter(), lambda problem: said.append(str(problem))).look()
    except AnabranchError as error:
        return [str(problem) for problem in error.problems], 0
    assert found.without == ()
    said += map(str, found.unreadable)
    whole = work.run(spec, [(bounds, SliceProgress.begin(bounds)) for bounds in found.bounds], math.inf, Quota(None))
    said += [str(progress.failure) for progress in whole if progress.failure is not None]
    assert [progress.findings.told for progress in whole if progress.findings.told] == []
    return said, sum(progress.findings.counts.records for progress in whole)


@pytest.mark.parametrize("mode", ["transactions", "translated"])
def test_verifying_needs_each_of_its_acls_and_no_other(secured: EmbeddedCluster, topic_name: str, mode: str) -> None:
    """Whatever is missing is told; without what is needed nothing is called the same, and without the rest all is."""
    user = f"{mode}-auditor"
    create(secured, topic_name)
    as_admin = topology(secured, "admin", topic_name, [topic_name], **MODES[mode])
    assert apply(as_admin) == []
    fill(secured, topic_name, RECORDS)
    Run.begin(as_admin, secured).copy()
    one = topology(secured, user, topic_name, [topic_name], **MODES[mode])
    needs = needed(one, "verify")
    rest = [acl for acl in needed(one, "verify", optional=True) if acl.is_optional]
    give(secured, user, needs)
    said, records = audited(one)
    assert records == RECORDS
    assert ["AB612" in words for words in said] == [True] * len(rest), said
    assert [acl for acl in rest if not any(names(words, user, acl) for words in said)] == []
    give(secured, user, rest)
    assert audited(one) == ([], RECORDS)
    missed = []
    for acl in needs:
        take(secured, user, acl)
        said, records = audited(one)
        if records or not any(names(words, user, acl) for words in said):
            missed.append((acl, said))
        give(secured, user, [acl])
    assert missed == []


def test_who_writes_offset_syncs_and_may_not_read_them_can_verify(secured: EmbeddedCluster, topic_name: str) -> None:
    """Such is the replicator without what is optional: it sees the topic, and is refused when it reads."""
    create(secured, topic_name)
    as_admin = topology(secured, "admin", topic_name, [topic_name], **MODES["translated"])
    assert apply(as_admin) == []
    fill(secured, topic_name, RECORDS)
    Run.begin(as_admin, secured).copy()
    one = topology(secured, "repeating-auditor", topic_name, [topic_name], **MODES["translated"])
    give(secured, "repeating-auditor", needed(one, "replicate"))
    said, records = audited(one)
    assert records == RECORDS
    assert [words for words in said if "AB612" in words and f"READ on topic {syncs_topic(SOURCE)}" in words] != []


def test_the_reconcile_loop_needs_both(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name)
    one = topology(secured, "whole", topic_name, [topic_name])
    give(secured, "whole", [*needed(one, "apply"), *needed(one, "replicate")])
    growth = growing(one)("north-south")
    assert growth.problems == ()
    assert growth.outcome.failed == []
    run = Run.begin(one, secured)
    assert [place.remote for place in run.places] == [f"{SOURCE}.{topic_name}"]
