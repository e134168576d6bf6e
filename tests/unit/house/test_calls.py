"""Every path of the Kafka clients ends in one of the house's errors: held against the code, and against lying peers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.checkpoints.groups.retention import retention_seconds
from reconciler.checkpoints.mirrormaker.reading import records
from reconciler.cli.replicate import warn
from reconciler.failover.topics.topics import Topics
from reconciler.model.base.errors import EnvironmentFault, Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import Reason
from reconciler.observe.connection import Connection
from reconciler.state.confluent import calls, clients
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.wire.pretended import PretendedBroker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HOUSE = ROOT / "reconciler"
# What raises KafkaException; of `result` whatever a broker answers.
RAISING = {
    *("list_topics", "get_watermark_offsets", "offsets_for_times", "committed", "position"),
    *("assign", "unassign", "seek", "subscribe", "consume", "produce", "flush", "poll", "init_transactions", "result"),
}
CALLBACKS = "an AdminClient serves nothing but callbacks of ours"
ANSWERED = "only of what `_problems` found no error in"
# Each with the reason why nothing is raised there.
ALLOWED = {
    ("state/confluent/clients.py", "make", "poll"): "a client that has asked nothing",
    ("state/journals/allowed.py", "check", "poll"): CALLBACKS,
    ("state/syncs.py", "ensure", "poll"): CALLBACKS,
    ("checkpoints/groups/bounds.py", "_answer", "poll"): CALLBACKS,
    ("provision/admin.py", "await_topics", "result"): ANSWERED,
    ("provision/admin.py", "lacking", "result"): ANSWERED,
    ("provision/removal.py", "_ids", "result"): ANSWERED,
    ("failover/topics/topics.py", "_ends", "result"): "only where `exception` is None",
    ("observe/topology.py", "_ask_each", "result"): "a thread of ours",
}
OF_OURS = SystemError("ours")
ORDERS = own("shop").owned
# A busy machine must get one answer within it; all of it is waited for.
PATIENCE = 15.0


def of_confluent() -> Iterator[Path]:
    for path in sorted(HOUSE.rglob("*.py")):
        if "confluent_kafka" in path.read_text(encoding="utf-8"):
            yield path


def is_guard(node: ast.AST, within: ast.AST) -> bool:
    """Tell whether an ancestor of a call, which is within one of its children, has KafkaException end in our errors."""
    if isinstance(node, ast.Try):
        return within in node.body and any(
            word in ast.unparse(handler.type)
            for handler in node.handlers
            if handler.type
            for word in ("KafkaExc", "RAISED")
        )
    if isinstance(node, ast.With):
        return any(word in ast.unparse(item) for item in node.items for word in ("ours(", "KafkaException", "RAISED"))
    if isinstance(node, ast.FunctionDef):
        return "KafkaException" in (ast.get_docstring(node) or "")
    # A question that is handed to `ask`, which catches.
    return isinstance(node, ast.Lambda)


def unguarded(path: Path) -> Iterator[tuple[str, str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RAISING):
            continue
        if ast.unparse(node.func.value) in {"self", "self._follower", "self._journal", "opened", "spot"}:
            continue
        at: ast.AST = node
        function = ""
        while at in parents and not is_guard(parents[at], at):
            at = parents[at]
            if isinstance(at, ast.FunctionDef) and not function:
                function = at.name
        if at not in parents:
            yield path.relative_to(HOUSE).as_posix(), function, node.func.attr


def test_each_call_of_the_client_library_ends_in_one_of_our_errors() -> None:
    found = [one for path in of_confluent() for one in unguarded(path)]
    assert [one for one in found if one not in ALLOWED] == []
    # What is allowed for a reason is there.
    assert {one for one in found} == set(ALLOWED)


def test_topics_are_listed_in_one_place_and_no_future_is_given_a_limit_of_its_own() -> None:
    listing, limited = [], []
    for path in of_confluent():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = path.relative_to(HOUSE).as_posix()
                listing += [name] * (node.func.attr == "list_topics")
                # A limit ends in a TimeoutError without a reason; the request has one of its own.
                limited += [name] * (node.func.attr == "result" and bool(node.args or node.keywords))
    assert listing == ["embedded/cluster.py", "state/confluent/clients.py"]
    assert limited == []


@pytest.fixture(name="empty", scope="module", params=[("orders",), ()], ids=["with topics", "without topics"])
def empty_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A broker that names none as ready, as one does while its cluster begins or ends."""
    with PretendedBroker(lambda: [], keeps=True, topics=request.param) as broker:
        yield Cluster("west", (f"127.0.0.1:{broker.port}",))


def asked(ask: Callable[[Cluster], object], cluster: Cluster) -> Problem:
    with pytest.raises(Unreachable) as caught:
        ask(cluster)
    (problem,) = caught.value.problems
    return problem


def test_a_cluster_that_names_no_broker_is_not_reachable(empty: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in (
        "observe.reach.ANSWER_SECONDS",
        "checkpoints.groups.retention._SECONDS",
        "failover.topics.topics._FIRST_SECONDS",
        "failover.topics.topics._ANSWER_SECONDS",
    ):
        monkeypatch.setattr(f"reconciler.{where}", PATIENCE)
    asks: dict[str, Callable[[Cluster], object]] = {
        "observe": lambda cluster: Connection(cluster, PATIENCE),
        "metadata": lambda cluster: clients.metadata(cluster, PATIENCE),
        "asker": lambda cluster: ClusterLookup(cluster, PATIENCE).metadata(PATIENCE),
        "journal": lambda cluster: Journal(cluster, ORDERS, PATIENCE).ensure(),
        "reading": lambda cluster: list(records(cluster, "orders", PATIENCE)),
        "settings of brokers": retention_seconds,
        "topics": lambda cluster: Topics(cluster, PATIENCE),
    }
    # Each waits for all of its patience, so they wait side by side.
    with ThreadPoolExecutor(len(asks)) as pool:
        found = dict(zip(asks, pool.map(lambda ask: asked(ask, empty), asks.values()), strict=True))
    assert {name: (one.code, one.message) for name, one in found.items()} == dict.fromkeys(
        asks, ("AB310", "does not answer: no broker of it is ready just now")
    )


class AtItsEnd:
    """A producer or consumer that is at its end: each call raises."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Any:
        def raise_it(*_: object, **__: object) -> None:
            raise self._error

        return raise_it


def fatal(code: int = KafkaError._FATAL, said: str = "Cluster authorization failed") -> BaseException:
    error: BaseException = KafkaException(KafkaError(code, said, fatal=True))
    return error


def by_callback() -> BaseException:
    error = SystemError("returned a result with an exception set")
    error.__cause__ = fatal()
    return error


@pytest.mark.parametrize("error", [fatal(), by_callback(), FutureTimeoutError()], ids=["fatal", "callback", "time"])
def test_a_producer_at_its_end_is_thrown_away_by_who_only_waits(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(Cluster("west", ("127.0.0.1:1",)), ORDERS, 0.5)
    monkeypatch.setattr(clients, "make", lambda *_, **__: AtItsEnd(error))
    journal.post("key", {"a": 1})
    journal._producer.get()
    journal.flush()
    assert journal._producer.client is None
    journal.flush()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (fatal(), "AB311"),
        (by_callback(), "AB311"),
        (FutureTimeoutError(), "AB310"),
        (BufferError("Local: Queue full"), "AB310"),
        (fatal(KafkaError._TRANSPORT, "broker transport failure"), "AB310"),
    ],
    ids=["fatal", "callback", "time", "full", "away"],
)
def test_a_producer_at_its_end_is_told_to_who_stores(
    error: BaseException, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(Cluster("west", ("127.0.0.1:1",)), ORDERS, 0.5)
    monkeypatch.setattr(clients, "make", lambda *_, **__: AtItsEnd(error))
    with pytest.raises(EnvironmentFault) as caught:
        journal.write("key", {"a": 1})
    assert [problem.code for problem in caught.value.problems] == [code]


def test_a_journal_that_is_not_made_in_time_is_not_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(Cluster("west", ("127.0.0.1:1",)), ORDERS, 0.5)
    monkeypatch.setattr(clients, "make", lambda *_, **__: AtItsEnd(FutureTimeoutError()))
    monkeypatch.setattr(clients.Renewed, "ask", lambda *_: SimpleNamespace(topics={}, brokers={1: None}))
    with pytest.raises(Unreachable) as caught:
        journal.ensure()
    assert caught.value.problems[0].message == (
        f"does not answer: CREATE on topic {ORDERS.name}: no answer came in time"
    )


def test_what_is_not_the_librarys_is_raised_as_it_is() -> None:
    cluster = Cluster("west", ("127.0.0.1:1",))
    with pytest.raises(SystemError, match="ours"), calls.ours(cluster, "topic orders"):
        raise OF_OURS
    with pytest.raises(EnvironmentFault) as caught, calls.ours(cluster, "topic orders", "DESCRIBE"):
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    refusal = Problem("AB313", cluster.where, "an anonymous user is not allowed DESCRIBE on topic orders", "")
    assert caught.value.problems[0].message == refusal.message


def test_nothing_ends_with_two_codes() -> None:
    inner = Problem("AB310", "cluster west", "does not answer", "start it")
    told = f"flow east-west: cannot look after remote topics: {inner}"
    assert str(Problem("AB330", "", told, "")) == f"{told}"
    assert str(Problem("AB330", "", told, "wait")) == f"{told} — wait [AB330]"
    assert str(Problem("AB330", "", "no topic [AB]", "")) == "no topic [AB] [AB330]"
    assert str(Reason("AB220", f"{inner}")) == str(inner)
    assert str(Reason("AB220", "away")) == "away [AB220]"


def test_a_warning_that_is_about_an_error_is_printed_with_that_errors_code(capsys: pytest.CaptureFixture[str]) -> None:
    warn(f"flow east-west: {Problem('AB310', 'cluster west', 'does not answer', 'start it')}")
    said = " ".join(capsys.readouterr().err.split())
    assert said == "warning: flow east-west: cluster west: does not answer — start it [AB310]"
