"""The status topic: each task posts its status every second, and a last one when it ends.

Tasks post; `status`, the demo's view and `replicate --until-caught-up` read. The key is flow, task and run, so two runs
of one flow do not overwrite each other. Above 100 partitions a task posts them as pages, with keys of their own, and a
page only when one of its partitions has changed: most of thousands of partitions do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.model.base.shape import (
    COUNT,
    ID,
    MOST_PARTITIONS,
    TIME,
    Misfit,
    fields,
    fits,
    listed,
    maybe,
    row,
    text,
    whole,
)
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import MOST_GROUPS, LastLook, SyncedGroup
from reconciler.model.tasks.status import PartitionStatus, TaskStatus
from reconciler.state.journals.encoding import Stored, Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.home import JournalPlace, journals
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalRecord

_FORGET_SECONDS = 3600.0
# Keys of records of the last look at groups begin with it; no flow has such a name.
_LOOKS = "@groups/"
# Partitions of one page. A task with no more posts them in its status.
_PAGE = 100
# A post is not awaited, so it is repeated in case an outage has lost it.
_REPEAT_SECONDS = 30.0
# A process that ends waits no longer for clusters that do not answer.
_FLUSH_SECONDS, _FLUSH_AT_LEAST = 2.0, 0.1

# Kafka bounds names of groups by the size of a string in its protocol.
_LONGEST_GROUP = 32_767
_PAGES = whole(0, MOST_PARTITIONS // _PAGE)
_SYNCED = row(text(_LONGEST_GROUP), TIME, ID)
_LOOK = partial(
    fields,
    required={"looked-at": TIME, "groups": maybe(COUNT)},
    optional={"by-group": listed(lambda value: SyncedGroup(*_SYNCED(value)), MOST_GROUPS)},
)
_ROWS = listed(PartitionStatus.from_json, 100 * _PAGE)

Page = tuple[PartitionStatus, ...]


def _key(status: TaskStatus) -> str:
    return f"{status.flow}/{status.task}/{status.run}"


def _page_key(key: str, number: int) -> str:
    return f"{key}/{number}"


def _key_of_page(page_key: str) -> str:
    return page_key.rpartition("/")[0]


@dataclass
class _Pages:
    """The pages that one task has posted, and when (monotonic seconds)."""

    posted: list[tuple[Page, float]] = field(default_factory=list)

    def news(self, pages: list[Page], now: float) -> dict[int, Page | None]:
        """Return the pages to post, by number, None for one to remove; they count as posted from now on."""
        news: dict[int, Page | None] = dict.fromkeys(range(len(pages), len(self.posted)))
        del self.posted[len(pages) :]
        for number, page in enumerate(pages):
            before = self.posted[number] if number < len(self.posted) else None
            if before is not None and before[0] == page and now < before[1] + _REPEAT_SECONDS:
                continue
            self.posted[number : number + 1] = [(page, now)]
            news[number] = page
        return news


class StatusWriter:
    """Posts the status of tasks.

    Args:
        cluster: the target.
        topology: name of the topology of its process.
        digest: of the declaration of its process, for statuses without one.
    """

    def __init__(self, cluster: Cluster, topology: str, digest: str = "") -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "status"))
        self._digest = digest
        self._topology = topology
        self._pages: dict[str, _Pages] = {}

    def post(self, status: TaskStatus) -> None:
        """Send one status without waiting for it to be stored."""
        key, rows = _key(status), status.partitions
        pages = [rows[at : at + _PAGE] for at in range(0, len(rows), _PAGE)] if len(rows) > _PAGE else []
        for number, page in self._pages.setdefault(key, _Pages()).news(pages, time.monotonic()).items():
            value = None if page is None else {"of": key, "partitions": [row.to_json() for row in page]}
            self._journal.post(_page_key(key, number), value)
        digest, topology = self._digest or status.digest, self._topology or status.topology
        word = replace(status, digest=digest, topology=topology, partitions=() if pages else rows)
        # After its pages, so a reader of it has read them.
        self._journal.post(key, word.to_json() | ({"pages": len(pages)} if pages else {}))

    def post_last(self, status: TaskStatus) -> None:
        """Send the last status and wait until it is stored or given up."""
        self.post(status)
        self._journal.flush()

    def flush(self, seconds: float | None = None) -> None:
        """Wait until everything posted is stored or given up, for `seconds` at most; by default for the timeout."""
        self._journal.flush(seconds)

    def withdraw(self, status: TaskStatus) -> None:
        """Remove a status, without waiting until that is stored."""
        self._journal.post(_key(status), None)


def flush_all(writers: Iterable[StatusWriter]) -> None:
    """Wait until what several writers have posted is stored, for two seconds in all where clusters are away.

    A status that is not removed by then counts as old after some seconds.
    """
    deadline = time.monotonic() + _FLUSH_SECONDS
    for writer in writers:
        # The later ones have sent theirs while the first one waited.
        writer.flush(max(_FLUSH_AT_LEAST, deadline - time.monotonic()))


class StatusReader:
    """Follows the status topic of a topology at one target cluster; a shared topic has those of other topologies, too.

    Args:
        cluster: the target.
        topology: name of the topology.
        place: of the topic, where it is not the topology's.

    Raises:
        Unreachable: AB310, at the first use, when the cluster does not answer.
    """

    def __init__(self, cluster: Cluster, topology: str, place: JournalRecord | None = None) -> None:
        self._cluster = cluster
        self._place = place or JournalPlace(topology, "status")
        self._follower: Follower | None = None
        self._read = _Statuses()

    def current(self, patience: float = 0.0) -> list[TaskStatus]:
        """Return the newest status of each task of each run, in the order of flows, tasks and runs.

        Args:
            patience: seconds that the cluster may take, in calls after the first, to answer with the end of the
                topic. With 0 there is no such request: of a cluster that is away nothing new arrives.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        # Of several statuses of a task the newest alone counts.
        newest: dict[str, Value | None] = {}
        try:
            if self._follower is None:
                self._follower = Journal(self._cluster, self._place).follow()
                newest.update(self._follower.catch_up())
            else:
                newest.update(self._follower.arrived(patience))
        finally:
            # What came before an error does not come again.
            for key, value in newest.items():
                self._read.take(key, value)
        return self._read.words()

    def last_looks(self) -> Mapping[str, LastLook]:
        """Return, by flow, when its groups were last looked at, as the last `current` has read it."""
        return self._read.looks

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()


class LookWriter:
    """Records when the groups of one flow were looked at, in a topic that only its topology's processes may write.

    Args:
        cluster: the target.
        topology: name of the topology.
        flow: name of the flow.
    """

    def __init__(self, cluster: Cluster, topology: str, flow: str) -> None:
        self._cluster = cluster
        self._topology = topology
        self._journal = Journal(cluster, JournalPlace(topology, "status"))
        self._key = f"{_LOOKS}{flow}"
        self._is_there = False

    def write(self, look: LastLook) -> None:
        """Write it and wait until it is stored; nothing is written where the topic is shared.

        Raises:
            EnvironmentFault: AB310 or AB311, it is not stored.
        """
        if not journals(self._cluster, self._topology).is_own:
            return
        if not self._is_there:
            self._journal.ensure()
            self._is_there = True
        by_group = [list(group) for group in look.by_group[:MOST_GROUPS]]
        self._journal.write(self._key, {"looked-at": look.time, "groups": look.groups, "by-group": by_group})


class _Statuses:
    """The newest values of the status topic. Assembled statuses are cached, as callers read several times a second."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[TaskStatus, int]] = {}
        self._pages: dict[str, Page] = {}
        self._words: dict[str, TaskStatus] = {}
        self.looks: dict[str, LastLook] = {}

    def take(self, key: str, value: Value | None) -> None:
        """Take one value of the topic, None for a removal."""
        if key.startswith(_LOOKS):
            if value is not None and (look := _look(value)) is not None:
                self.looks[key.removeprefix(_LOOKS)] = look
            return
        for word in (key, _key_of_page(key)):
            self._words.pop(word, None)
        if value is None:
            self._heads.pop(key, None)
            self._pages.pop(key, None)
            return
        # A value of another release that does not fit is left out, and must not hide all others.
        try:
            if "of" in value:
                self._pages[key] = fields(value, {"partitions": _ROWS})["partitions"]
            else:
                count = fields(value, {}, {"pages": _PAGES}).get("pages", 0)
                self._heads[key] = TaskStatus.from_json(value), count
        except Misfit as error:
            if isinstance(value, Stored):
                value.pass_over(str(error))

    def words(self) -> list[TaskStatus]:
        """Return the newest word of each task, in the order of their keys."""
        return [self._word(key) for key in sorted(self._heads)]

    def _word(self, key: str) -> TaskStatus:
        word = self._words.get(key)
        if word is None:
            word, count = self._heads[key]
            if count:
                # A page that has not arrived yet counts as empty.
                pages = [self._pages.get(_page_key(key, number), ()) for number in range(count)]
                word = replace(word, partitions=tuple(row for page in pages for row in page))
            self._words[key] = word
        return word


def _look(value: Value) -> LastLook | None:
    """Return the record of a look at groups; None for a value that is not one."""
    known = fits(_LOOK, value)
    return None if known is None else LastLook(known["looked-at"], known["groups"], known.get("by-group", ()))


def newest_runs(statuses: Iterable[TaskStatus], now: float) -> list[TaskStatus]:
    """Return the tasks of live runs, and for flows without one those of the run with the newest status.

    The statuses of live processes that run no task are among them.
    """
    by_flow: dict[str, list[TaskStatus]] = {}
    for status in statuses:
        by_flow.setdefault(status.flow, []).append(status)
    chosen: list[TaskStatus] = []
    for words in by_flow.values():
        chosen += [word for word in words if word.is_held and word.is_live(now)]
        tasks = [word for word in words if not word.is_held]
        if not tasks:
            continue
        newest_first = sorted(tasks, key=lambda status: status.time, reverse=True)
        live = {status.run: status.tasks for status in reversed(newest_first) if status.is_live(now)}
        # A silent task of a living run is part of the picture: it may be the one that is in trouble.
        runs = live or {newest_first[0].run: newest_first[0].tasks}
        chosen += [status for status in tasks if status.run in runs and status.task < runs[status.run]]
    return chosen


def forget_old(cluster: Cluster, topology: str, flows: Iterable[str]) -> None:
    """Remove the statuses of `flows` that are older than an hour, which compaction would keep for ever.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading or writing is refused.
    """
    journal = Journal(cluster, JournalPlace(topology, "status"))
    names, horizon = tuple(flows), time.time() - _FORGET_SECONDS

    def is_old(value: Value) -> bool:
        posted_at = value.get("time")
        return value.get("flow") in names and isinstance(posted_at, int | float) and posted_at < horizon

    found = journal.read()
    old = [key for key, value in found.items() if is_old(value)]
    # Pages first: only their status has the time.
    pages = [key for key, value in found.items() if value.get("of") in old]
    if old:
        journal.write_all(dict.fromkeys(pages + old))
