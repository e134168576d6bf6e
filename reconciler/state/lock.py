"""The lock of `apply` on a target: a queue of claims in the topology's journal of ownership.

The journal has one partition, so all processes read claims in one order: the first claim holds the lock. Its process
writes a beat every `BEAT_SECONDS`. A waiting process removes a claim in front of its own when the claim's process has
ended on this machine, or when no beat arrived for `SILENT_SECONDS`. Times are of the waiting machine's boot clock,
which goes on while the machine sleeps. `cli` takes the lock, the provisioner checks it before each change.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from types import TracebackType
from typing import Self

from reconciler.model.base.errors import AnabranchError, Locked, Problem
from reconciler.model.base.text import utc
from reconciler.model.declared.cluster import Cluster
from reconciler.state.journals import process
from reconciler.state.journals.boot import boot_time
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalRecord
from reconciler.state.journals.user import user

_LOG = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
SILENT_SECONDS = 15.0
"""A claim without a beat for so long is dead."""
SURE_SECONDS = 10.0
"""For so long after its last stored beat no other process has removed a claim."""
_TICK = 0.1
_SECONDS = 10.0
_KIND = "lock"


def is_claim(key: str) -> bool:
    """Return whether a key of a journal of ownership is a claim of its lock, or the renewal of one."""
    return key.startswith(f"{_KIND}/")


class Lock:
    """One claim to change a topology's things on one target.

    Args:
        cluster: the target; its journal exists.
        topology: name of the topology.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._cluster = cluster
        self._prefix = f"{_KIND}/{topology}/{cluster.alias}/"
        self._id = uuid.uuid4().hex
        self._place: JournalRecord = JournalPlace(topology, "owned")
        self._journal = Journal(cluster, self._place)
        self._follower: Follower | None = None
        # Claims in the order of the log, and when the last beat of each arrived (seconds of the boot clock).
        self._claims: dict[str, Value] = {}
        self._heard: dict[str, float] = {}
        self._beaten = 0.0
        self._is_lost = False
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._beat, name="lock", daemon=True)

    def take(self, wait: float) -> None:
        """Claim the lock, and wait until this claim is the first.

        Args:
            wait: seconds; a dead holder is removed after `SILENT_SECONDS`.

        Raises:
            Locked: AB501, another process still holds it after `wait` seconds.
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, the journal cannot be read or written.
        """
        # A lock is released in the journal in which it was claimed, also when the journals are moved meanwhile.
        self._place = self._place.at(self._cluster, _SECONDS)
        self._journal = Journal(self._cluster, self._place)
        began = boot_time()
        claim = {"kind": _KIND, "by": user(), "since": time.time(), "process": process.own_name()}
        self._journal.write(self._key(self._id), claim)
        self._beaten = began
        self._beats.start()
        try:
            self._follower = self._journal.follow()
            for key, value in self._follower.catch_up().items():
                self._hear(key, value)
            self._take_out_silent()
            while (holder := self._holder()) != self._id:
                if boot_time() - began >= wait:
                    raise Locked(self._held_by(holder))
                time.sleep(_TICK)
                self._listen()
                self._take_out_silent()
            self.check()
            _LOG.debug("%s: lock taken after %.1f s", self._cluster.where, boot_time() - began)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Check that this process still holds the lock.

        Raises:
            Locked: AB502, no beat was stored for `SURE_SECONDS`: another process may hold it.
        """
        silent = boot_time() - self._beaten
        if silent < SURE_SECONDS and not self._is_lost:
            return
        message = f"the lock was not renewed for {SURE_SECONDS:g} s, and another process may hold it now"
        raise Locked(Problem("AB502", self._cluster.where, message, "run apply again: what was done stays done"))

    def release(self) -> None:
        """Remove the claim; one that cannot be removed now expires after `SILENT_SECONDS`."""
        self._over.set()
        if self._beats.is_alive():
            self._beats.join()
        with contextlib.suppress(AnabranchError):
            self._journal.write_all({self._key(self._id): None, self._beat_key(self._id): None})
        if self._follower is not None:
            self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    # --- claims ------------------------------------------------------------------------------------------------------

    def _key(self, claim: str) -> str:
        return f"{self._prefix}{claim}"

    def _beat_key(self, claim: str) -> str:
        return f"{self._prefix}{claim}/beat"

    def _listen(self) -> None:
        assert self._follower is not None, "it listens while it waits"
        for key, value in self._follower.poll(0.0):
            self._hear(key, value)

    def _hear(self, key: str, value: Value | None) -> None:
        if not key.startswith(self._prefix):
            return
        claim, _, beat = key.removeprefix(self._prefix).partition("/")
        if value is None and not beat:
            self._claims.pop(claim, None)
        elif value is not None:
            self._heard[claim] = boot_time()
            if not beat:
                self._claims[claim] = value

    def _holder(self) -> str:
        # The own claim was stored before this read; where it is gone, another process has removed it as dead.
        return next(iter(self._claims), "")

    def _take_out_silent(self) -> None:
        """Remove dead claims in front of the own one; removing one twice has no effect."""
        now = boot_time()
        for claim in list(self._claims):
            if claim == self._id:
                return
            is_silent = now - self._heard[claim] >= SILENT_SECONDS
            if is_silent or process.is_gone(self._claims[claim]["process"]):
                self._journal.write_all({self._key(claim): None, self._beat_key(claim): None})
                self._claims.pop(claim)

    def _held_by(self, claim: str) -> Problem:
        found = self._claims.get(claim)
        since = utc(found["since"]) if found else ""
        holder = f"{found['by']} since {since}" if found else "an unknown process: the claim of this one was removed"
        remedy = "wait until that is done (--wait SECONDS waits longer), and run it again"
        return Problem("AB501", self._cluster.where, f"is being changed by {holder}", remedy)

    def _beat(self) -> None:
        """Write beats until the release, with a producer of its own, as the main thread writes too."""
        journal = Journal(self._cluster, self._place)
        count = 0
        while not self._over.wait(BEAT_SECONDS):
            count += 1
            began = boot_time()
            try:
                journal.write(self._beat_key(self._id), {"kind": "beat", "count": count})
            except AnabranchError:
                continue
            # After one gap the lock stays in doubt: a waiting process may have removed the claim meanwhile.
            self._is_lost = self._is_lost or boot_time() - self._beaten >= SURE_SECONDS
            self._beaten = began
