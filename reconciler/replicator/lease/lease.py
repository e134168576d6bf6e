"""The lease: the right to write to remote partitions, kept by membership of the flow's group at the target.

Sequence numbers keep two owners from duplicating records only while the brokers know the producer, and they expire one
whose records are old. So every task of every run of a flow is a member of one classic group, and the group's assignor
grants each partition to one member (`assignor`). `task` opens a partition only when it is granted, and connections to
the target check `is_valid` right before each write to a socket.

A member's lease ends before the coordinator may remove the member: it counts from the SENDING of the last heartbeat
that was answered, on a clock that goes on while the machine sleeps, and leaves a moment for what is in flight.
Membership is dynamic: a restarted static member (KIP-345) would replace one that may still hold a valid lease, and both
would write. A member that finds the process of another one gone removes that one from the group instead.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from reconciler.model.names.own_names import lease_group
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.lease.assignor import LeaseHolder, Log, Member, Share, assign
from reconciler.replicator.partition import reasons
from reconciler.state.journals import process
from reconciler.state.journals.boot import boot_time
from reconciler.wire import (
    COORDINATOR_NOT_READY,
    Bell,
    BrokerError,
    ConnectionLost,
    ErrorCode,
    GroupWire,
    Job,
    Loop,
    Membership,
    error_name,
)

_LOG = logging.getLogger(__name__)

# The least that brokers allow by default (group.min.session.timeout.ms).
SESSION = 6.0
# A lost connection must be found out early enough for another try within the lease.
BEAT_TIMEOUT = 2.0
# Seconds that a request sent at the end of the lease has to arrive before another member can be granted its partition.
ON_THE_WAY = 1.0
_BEAT = 1.0
# Heartbeats are faster at first, because a rebalance waits for every member's next heartbeat.
_BEAT_AT_FIRST = 0.2
_AT_FIRST = 5.0
_RETRY = 0.2
_RETRY_REFUSED = 2.0
_LEAVE_PATIENCE = 1.0
_LONGEST_SESSION = 60.0

_NO_MEMBER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION}

_NOTHING: frozenset[Log] = frozenset()


def group_of(topology: str, flow: str) -> str:
    """Return the name of a flow's group at its target."""
    return lease_group(topology, flow)


class Lease:
    """One member of a flow's group.

    Args:
        loop: the task's loop.
        beats: to the target, for heartbeats, which no other request may delay.
        joins: to the target, for requests that wait for other members.
        group: name of the group.
        run: the run (start of `replicate`).
        lost: called when the lease is lost, before `holds` changes for any caller: it must close the connections over
            which was written, and drop what they still buffer.

    Attributes:
        changes: counts every change of what is held, or of the reason why it is not.
        losses: counts how often the lease was lost; channels opened before must be taken over again.
        beats: counts the heartbeats that were answered, or were given up.
        beat_seconds: how long the last of them took.
    """

    def __init__(
        self, loop: Loop, beats: GroupWire, joins: GroupWire, group: str, run: str, lost: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._beats = beats
        self._joins = joins
        self._lost = lost
        self._bell: Bell = loop.bell()
        self._job: Job | None = None
        self._ended = True
        self._me = Membership(-1, group)
        self._who = LeaseHolder(run, 0, time.time())
        self._session = SESSION
        # Whether only heartbeats are due; number of the join under way, and the job that sends heartbeats meanwhile.
        self._in_step = False
        self._turn = 0
        self._watch: Job | None = None
        self._wants = self._keeps = _NOTHING
        self._granted = self._surplus = _NOTHING
        self._taken: dict[Log, LeaseHolder] = {}
        self._refused: reasons.Verdict | None = None
        self._trouble = ""
        # On the boot clock: until when this member may write, when it last sent a join, and when it was last confirmed
        # that the group was not waiting for it.
        self._until = self._asked = self._settled = 0.0
        self.changes = 0
        self.losses = 0
        self.beats = 0
        self.beat_seconds = 0.0

    # --- for the task ------------------------------------------------------------------------------------------------

    def want(self, task: int, logs: Iterable[Log], keeps: Iterable[Log] = ()) -> None:
        """Set the partitions that this member claims; those that it drops must have nothing in flight.

        Args:
            task: number of the task.
            logs: all of them.
            keeps: those that it does not release to another run while it lives.
        """
        wants = frozenset(logs)
        self._keeps = frozenset(keeps)
        if wants != self._wants or task != self._who.task:
            self._wants = wants
            self._granted &= wants
            self._surplus &= wants
            self._who = LeaseHolder(self._who.run, task, self._who.since)
            self._in_step = False
            self.changes += 1
            self._bell.ring()

    def begin(self) -> None:
        """Be a member from now on, until `leave`."""
        if self._ended:
            # The reason why a former round gave the lease up does not concern this one.
            self._ended, self._trouble = False, ""
        if self._job is None or self._job.is_done:
            self._job = self._loop.spawn(self._keep)

    def check(self) -> None:
        """Handle a lease that has run out, and raise a failure of the lease's own jobs."""
        for job in (self._job, self._watch):
            if job is not None:
                job.raise_failure()
        if self._granted and not self.is_valid():
            self._lose(f"no heartbeat was answered in time{self._trouble and ': '}{self._trouble}")

    def is_valid(self) -> bool:
        """Return whether this member may still write; call it right before each write to a socket."""
        return boot_time() < self._until

    @property
    def membership(self) -> Membership:
        """The current membership in the group."""
        return self._me

    def holds(self, log: Log) -> bool:
        """Return whether this member may write to `log` and does not have to release it."""
        return log in self._granted and log not in self._surplus and self.is_valid()

    @property
    def surplus(self) -> frozenset[Log]:
        """Partitions that this member has to release to another run: nothing new may be sent to them."""
        return self._surplus

    def let_go(self, logs: Iterable[Log]) -> None:
        """Release some of what this member holds; nothing of it may be in flight."""
        gone = frozenset(logs)
        if gone:
            self._granted -= gone
            self._surplus -= gone
            self._in_step = False
            self.changes += 1
            self._bell.ring()

    def why_not(self, log: Log) -> reasons.Verdict | None:
        """Return why `log` is not held; None while the first join is under way."""
        if self._refused is not None:
            return self._refused
        if log in self._surplus:
            return PartitionState.WAITING, reasons.HANDED_OVER
        holder = self._taken.get(log)
        if holder is not None and self._me.member:
            return PartitionState.WAITING, reasons.held_elsewhere(holder.run, holder.task, holder.since)
        if not self._trouble:
            return None
        text = f"no lease of group {self._me.group} at {self._beats.cluster.where} now: {self._trouble}"
        return PartitionState.WAITING, Reason("AB224", text)

    async def leave(self) -> None:
        """Release everything and leave the group; call it when nothing is in flight."""
        self._ended = True
        self._lose("the run ends")
        self._taken = {}
        me, self._me = self._me, Membership(-1, self._me.group)
        self._joins.drop("the run ends")
        self._bell.ring()
        if not me.member or me.node < 0:
            return

        async def leave_group() -> None:
            try:
                await self._beats.leave(me, [me.member])
            except (ConnectionLost, BrokerError):
                return  # the coordinator removes the member when its session ends

        job = self._loop.spawn(leave_group)
        deadline = boot_time() + _LEAVE_PATIENCE
        while not job.is_done and boot_time() < deadline:
            await self._loop.sleep(_LEAVE_PATIENCE / 100)

    # --- a member's life ---------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while not self._ended:
            try:
                if self._me.node < 0:
                    node = await self._beats.group_coordinator(self._me.group)
                    self._me = replace(self._me, node=node)
                pause = await (self._beat() if self._in_step else self._join())
            except ConnectionLost as error:
                self._elsewhere(str(error))
                pause = _RETRY
            except BrokerError as error:
                pause = self._answered(error)
            except ValueError as error:
                # Metadata of another release: the next rebalance may have another leader.
                self._elsewhere(str(error))
                pause = _RETRY_REFUSED
            if pause and not self._ended:
                await self._bell.wait(pause)

    async def _beat(self) -> float:
        """Send a heartbeat; return the seconds until the next one."""
        if not await self._heartbeat():
            self._in_step = False
            return 0.0
        return _BEAT if boot_time() - self._asked > _AT_FIRST else _BEAT_AT_FIRST

    async def _heartbeat(self) -> bool:
        """Send a heartbeat; return False when the group begins a new generation."""
        self.check()
        sent, me = boot_time(), self._me
        code = await self._beats.heartbeat(me)
        if code not in (0, ErrorCode.REBALANCE_IN_PROGRESS):
            raise BrokerError(code)
        if me == self._me:
            if code == 0:
                self._settled = sent
            self._extend(sent)
        return code == 0

    async def _join(self) -> float:
        """Join the next generation and take the partitions granted in it."""
        if not self._me.member:
            await self._bury()
        self._turn += 1
        self._watch = self._loop.spawn(partial(self._beat_meanwhile, self._turn))
        said = self._wants, self._who
        try:
            share = await self._joined()
        finally:
            self._turn += 1
        if share is not None and not self._ended:
            # Joining waited for others: a heartbeat proves that the coordinator has not removed this member since.
            rests = await self._heartbeat()
            self._in_step = rests and said == (self._wants, self._who)
            self._take(share)
        return 0.0

    async def _joined(self) -> Share | None:
        """Go through both steps of a rebalance; None when the first must be taken again with the id just given."""
        self.check()
        self._asked = boot_time()
        patience = 2 * self._session
        words = Member(self._who, self._wants, self._granted, self._keeps).to_bytes()
        answer = await self._joins.join(self._me, words, self._session, patience)
        if self._ended:
            return None
        if answer.error == ErrorCode.MEMBER_ID_REQUIRED:
            self._me = replace(self._me, member=answer.member)
            return None
        if answer.error:
            raise BrokerError(answer.error)
        self._me = replace(self._me, member=answer.member, generation=answer.generation)
        self._settled = self._asked
        shares = _assign(answer.members) if answer.leads else {}
        return Share.from_bytes(await self._joins.sync(self._me, shares, patience))

    async def _beat_meanwhile(self, turn: int) -> None:
        """Keep the lease while the group waits for others; end the wait if the coordinator has moved.

        Until the next generation begins a heartbeat is answered REBALANCE_IN_PROGRESS, and restarts the session.
        """
        while True:
            await self._loop.sleep(_BEAT)
            if turn != self._turn:
                return
            sent, me = boot_time(), self._me
            try:
                code = await self._beats.heartbeat(me)
            except ConnectionLost as error:
                code, trouble = ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
            else:
                trouble = f"the coordinator answered {error_name(code)}"
            if turn != self._turn:
                return
            if code in COORDINATOR_NOT_READY:
                self._joins.drop(trouble)
                return
            joined = self._settled >= self._asked
            if me == self._me and (code == 0 or (code == ErrorCode.REBALANCE_IN_PROGRESS and not joined)):
                self._extend(sent)

    async def _bury(self) -> None:
        """Remove members whose processes ran on this machine and are gone, instead of waiting for their sessions."""
        listed = await self._beats.members(self._me)
        gone = [one.member for one in listed if process.is_gone(one.client_id.rpartition("@")[2])]
        if gone:
            await self._beats.leave(self._me, gone)

    # --- handling responses ------------------------------------------------------------------------------------------

    def _extend(self, sent: float) -> None:
        """Extend the lease from `sent`, but not beyond the time that a rebalance waits for a member to join."""
        self.beats, self.beat_seconds = self.beats + 1, boot_time() - sent
        self.check()
        proven = min(sent, self._settled + self._session)
        self._until = max(self._until, proven + self._session - ON_THE_WAY)

    def _take(self, share: Share) -> None:
        self._granted = share.granted & self._wants
        self._surplus = share.surplus & self._granted
        self._taken = dict(share.taken)
        _LOG.debug("group %s: lease holds %d partitions", self._me.group, len(self._granted))
        self._refused = None
        self._trouble = ""
        self.changes += 1

    def _lose(self, why: str) -> None:
        """Drop all partitions: each must be granted and taken over again."""
        held, self._granted, self._surplus = self._granted, _NOTHING, _NOTHING
        self._until = 0.0
        if held:
            _LOG.debug("group %s: lease of %d partitions ends: %s", self._me.group, len(held), why)
            self.losses += 1
            self._lost(f"the lease is lost: {why}")
        self._in_step = False
        self._trouble = why
        self.changes += 1

    def _elsewhere(self, why: str) -> None:
        """Look up the coordinator again; the lease goes on until it runs out."""
        self.beats, self.beat_seconds = self.beats + 1, BEAT_TIMEOUT
        self._me = replace(self._me, node=-1)
        self._trouble = why
        self.changes += 1

    def _answered(self, error: BrokerError) -> float:
        """Handle an error response; return the seconds to wait."""
        if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._in_step = False
            return 0.0
        if error.code in _NO_MEMBER:
            self._lose(f"the coordinator answered {error.name}")
            if error.code != ErrorCode.ILLEGAL_GENERATION:
                self._me = replace(self._me, member="", generation=-1)
            return _RETRY
        if error.code in COORDINATOR_NOT_READY:
            self._elsewhere(f"the coordinator answered {error.name}")
            return _RETRY
        if error.code == ErrorCode.INVALID_SESSION_TIMEOUT and self._session < _LONGEST_SESSION:
            self._session = min(2 * self._session, _LONGEST_SESSION)
            return 0.0
        state, reason = reasons.why_refused(error, "READ", f"group {self._me.group}")
        self._elsewhere(str(error))
        self._refused = (state, reason) if state is PartitionState.PARKED else None
        return _RETRY_REFUSED


def _assign(words: Mapping[str, bytes]) -> dict[str, bytes]:
    """Assign partitions by the members' metadata; a member with unreadable metadata gets none."""
    members = {}
    for name, data in words.items():
        with contextlib.suppress(ValueError):
            members[name] = Member.from_bytes(data)
    return {name: share.to_bytes() for name, share in assign(members).items()}
