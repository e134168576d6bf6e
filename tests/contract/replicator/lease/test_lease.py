"""The lease against real coordinators: who is granted what, and what becomes of it when members and brokers go."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.lease import lease
from reconciler.replicator.lease.assignor import Log
from reconciler.replicator.lease.lease import Lease
from reconciler.state.journals import process
from reconciler.state.journals.boot import boot_time
from reconciler.wire import GroupWire, Loop, Membership
from tests.support.clusters.kafka import declared

SECONDS = 300.0
# A loop that is never held up for longer and heartbeats that are answered sooner, one a second, keep a lease of five.
STEADY = 1.5
A, B, C = ("east.orders", 0), ("east.orders", 1), ("east.users", 7)


class TimedWire(GroupWire):
    """Measures how long heartbeats take, answered or not."""

    slowest = 0.0

    async def heartbeat(self, who: Membership) -> int:
        began = boot_time()
        try:
            return await super().heartbeat(who)
        finally:
            self.slowest = max(self.slowest, boot_time() - began)


class Crowd:
    """Some members of one group, all on one loop."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.loop = Loop()
        self.lost: list[str] = []
        self._cluster, self._group = cluster, group
        self._wires: dict[Lease, tuple[TimedWire, GroupWire]] = {}
        # On the boot clock: when the loop was last seen to run, and the longest time that it did not.
        self._looked = boot_time()
        self._longest = 0.0

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for member in list(self._wires):
            self.vanish(member)
        self.loop.close()

    def member(self, run: str, wants: Iterable[Log], name: str | None = None, task: int = 0) -> Lease:
        """Return a new member; `name` is the name of its process."""
        client = f"tests@{name or process.own_name()}"
        wires = (
            TimedWire(self.loop, self._cluster, client, 2.0),
            GroupWire(self.loop, self._cluster, client, 2.0),
        )
        made = Lease(self.loop, *wires, self._group, run, self.lost.append)
        self._wires[made] = wires
        made.want(task, wants)
        made.begin()
        return made

    def vanish(self, member: Lease) -> None:
        """Let a member fall silent, as if its process were killed."""
        member._ended = True
        for wire in self._wires.pop(member):
            wire.close()

    def leave(self, member: Lease) -> None:
        self.loop.run(member.leave)

    def is_steady(self) -> bool:
        """Tell whether neither this process nor the broker ever stood still for so long that a lease may be lost."""
        now = boot_time()
        self._longest, self._looked = max(self._longest, now - self._looked), now
        return max([self._longest, *(beats.slowest for beats, _ in self._wires.values())]) < STEADY

    def wait_if_steady(self, until: Callable[[], bool]) -> None:
        """Wait; skip the test when the machine does not keep up, for then everything may be lost and dealt anew."""
        self.wait(lambda: not self.is_steady() or until())
        if not self.is_steady():
            pytest.skip("the machine stood still for so long that a lease may be lost")

    def wait(self, until: Callable[[], bool]) -> None:
        async def watch() -> None:
            deadline = time.monotonic() + SECONDS
            while not until():
                assert time.monotonic() < deadline, [(m._granted, m._trouble) for m in self._wires]
                for member in self._wires:
                    member.check()
                await self.loop.sleep(0.02)

        self.loop.run(watch)

    def pass_time(self, seconds: float, while_true: Callable[[], bool]) -> None:
        async def watch() -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                assert while_true()
                await self.loop.sleep(0.02)

        self.loop.run(watch)


def holds(member: Lease, *logs: Log) -> bool:
    """Whether the member holds exactly these, of all that the tests want."""
    return {log for log in (A, B, C) if member.holds(log)} == set(logs)


def code(member: Lease, log: Log) -> str | None:
    """Return the code of the reason why the member does not hold a log."""
    verdict = member.why_not(log)
    return verdict[1].code if verdict else None


@pytest.fixture
def crowd(target_cluster: EmbeddedCluster, topic_name: str) -> Iterator[Crowd]:
    with Crowd(declared("west", target_cluster), f"anabranch.{topic_name}") as crowd:
        yield crowd


def test_the_tasks_of_a_run_get_what_each_wants(crowd: Crowd) -> None:
    tasks = [crowd.member("run", {log}, task=n) for n, log in enumerate((A, B, C))]
    crowd.wait(lambda: all(holds(task, log) for task, log in zip(tasks, (A, B, C), strict=True)))
    assert [task.losses for task in tasks] == [0, 0, 0]


def test_a_second_run_waits_and_says_for_whom_and_goes_on_when_the_first_leaves(crowd: Crowd) -> None:
    one = crowd.member("first-run", {A, B})
    crowd.wait(lambda: holds(one, A, B))
    two = crowd.member("second-run", {A, B, C}, task=3)
    crowd.wait(lambda: holds(two, C))
    state, reason = two.why_not(A) or pytest.fail("no reason")
    assert (state, reason.code) == (PartitionState.WAITING, "AB223")
    assert "run first-run (task 0, since 2" in reason.text
    assert holds(one, A, B)
    crowd.leave(one)
    assert holds(one)
    crowd.wait(lambda: holds(two, A, B, C))
    assert (one.losses, two.losses) == (1, 0)


def test_runs_that_want_the_same_share_it_and_a_third_gets_its_part(crowd: Crowd) -> None:
    one = crowd.member("first", {A, B, C})
    crowd.wait(lambda: holds(one, A, B, C))
    two = crowd.member("second", {A, B, C})
    crowd.wait(lambda: one.surplus == {A})
    # Until it has let go the other does not get it.
    assert not two.holds(A)
    assert one.is_valid()
    one.let_go({A})
    crowd.wait(lambda: holds(one, B, C) and holds(two, A))
    three = crowd.member("third", {A, B, C})
    crowd.wait(lambda: one.surplus == {B})
    one.let_go({B})
    crowd.wait(lambda: holds(one, C) and holds(two, A) and holds(three, B))
    assert [run.losses for run in (one, two, three)] == [0, 0, 0]
    crowd.leave(two)
    crowd.wait(lambda: holds(one, A, C) and holds(three, B))


def test_what_a_member_wants_grows_and_shrinks_without_a_break(crowd: Crowd) -> None:
    one = crowd.member("first", {A})
    # Whoever is dealt to alone gets all that it wants.
    crowd.wait_if_steady(lambda: holds(one, A))
    two = crowd.member("second", {A, B})
    crowd.wait_if_steady(lambda: holds(one, A) and holds(two, B))
    one.want(0, {A, C})
    # What is held stays held while the group deals anew.
    crowd.wait_if_steady(lambda: not (one.holds(A) and holds(two, B)) or holds(one, A, C))
    assert holds(one, A, C)
    assert holds(two, B)
    one.want(0, {C})
    crowd.wait_if_steady(lambda: not (holds(one, C) and two.holds(B)) or holds(two, A, B))
    assert holds(one, C)
    assert holds(two, A, B)
    assert (one.losses, two.losses) == (0, 0)


def test_a_member_whose_process_is_gone_is_not_waited_for(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    buried: list[str] = []
    leave = GroupWire.leave

    async def noted(self: GroupWire, who: Membership, members: Sequence[str]) -> None:
        buried.extend(members)
        await leave(self, who, members)

    monkeypatch.setattr(GroupWire, "leave", noted)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process.own_name(child.pid)
    one = crowd.member("run", {A}, name)
    crowd.wait(lambda: holds(one, A))
    crowd.vanish(one)
    ends = one._until
    child.communicate(b"\n")
    two = crowd.member("run", {A})
    crowd.wait(lambda: holds(two, A))
    # A heartbeat has just begun the session of the first: nothing but its being buried ends that before its time.
    assert one._me.member in buried or boot_time() >= ends


def test_who_stood_still_for_too_long_holds_nothing_and_the_next_waited_for_that(
    crowd: Crowd, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    # Each of them wants one that the other does not: what both want, neither is asked to let go.
    one = crowd.member("first", {A, C})
    crowd.wait(lambda: holds(one, A, C))
    with Crowd(declared("west", target_cluster), f"anabranch.{topic_name}") as other:
        two = other.member("second", {A, B})
        # The first one's loop does not run, as if its machine stood still: it neither beats nor takes note.
        other.wait(lambda: two.holds(A) or (two.holds(B) and not one.is_valid()))
        assert not one.is_valid(), "two owners at once"
        other.wait(lambda: holds(two, A, B))
        assert (holds(one), one.losses) == (True, 0)
        # Both run again, on threads of their own.
        with ThreadPoolExecutor(1) as pool:
            still = pool.submit(other.pass_time, 3.0, lambda: holds(two, A, B))
            crowd.wait(lambda: code(one, A) == "AB223")
            still.result(SECONDS)
        assert (holds(one, C), one.losses, two.losses) == (True, 1, 0)
        assert (len(crowd.lost), len(other.lost)) == (1, 0)


@pytest.fixture(scope="module")
def shaky() -> Iterator[EmbeddedCluster]:
    """A cluster that may be killed, and asks for sessions of at least three seconds."""
    options = ClusterOptions(
        overrides={
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "250",
            "group.min.session.timeout.ms": "3000",
        }
    )
    with running(EmbeddedCluster("shaky", options)) as (cluster,):
        yield cluster


def test_a_coordinator_that_comes_back_deals_on(
    shaky: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SESSION", 2.0)
    with Crowd(declared("west", shaky), topic_name) as crowd:

        def all_dealt(one: Lease, two: Lease) -> bool:
            return (holds(one, A, B) and holds(two, C)) or (holds(one, B) and holds(two, A, C))

        one, two = crowd.member("first", {A, B}), crowd.member("second", {A, C})
        # Whoever comes first is granted A, and after the outage again.
        crowd.wait(lambda: all_dealt(one, two))
        # The other one goes on saying who held it.
        holder = one if holds(one, A, B) else two
        shaky.kill_broker()
        crowd.wait(lambda: not one.is_valid() and not two.is_valid())
        state, reason = holder.why_not(A) or pytest.fail("no reason")
        assert (state, reason.code) == (PartitionState.WAITING, "AB224")
        assert shaky.bootstrap in reason.text
        shaky.start_broker()
        crowd.wait(lambda: all_dealt(one, two))
        # A machine that stands still makes it more.
        assert min(one.losses, two.losses) >= 1
