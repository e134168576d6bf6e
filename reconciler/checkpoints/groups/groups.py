"""The groups of one cluster: which there are, what they have committed, where their logs end; and committing for them.

Requests for many groups or partitions run side by side. Membership is never checked beforehand: a commit by a
non-member (generation -1) is refused by the coordinator where there are members, in the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.checkpoints.groups import asking
from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem, Refused, together
from reconciler.model.base.suggestions import did_you_mean
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import ALL, choosing
from reconciler.model.names.selection import EVERYTHING, is_literal
from reconciler.model.offsets.committed import Committed, Log, LogBounds, Move
from reconciler.state.confluent.faults import refused, unreachable
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode, error_name
from reconciler.wire.requests.commits import CommittedPosition

OURS = "anabranch."
"""What names of flows' own groups begin with."""

Item = TypeVar("Item")

_CONNECT_SECONDS = 4.0
_ANSWER_SECONDS = 30.0
# A coordinator writes a commit as one batch, of 1 MB at most by default.
_COMMIT_BYTES = 400_000
_OVERHEAD = 64
_CORRECT = "correct the name; a group is gone some days after its last member (offsets.retention.minutes)"
_CONSUMERS = frozenset({"consumer", ""})
_HAS_MEMBERS = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
_STATE_OF = {
    "share": "share groups keep their progress elsewhere",
    "streams": "streams groups keep state beside their offsets",
}


class Groups:
    """The groups of one cluster, over one client that is made at once and lives until `close`.

    Args:
        cluster: which one.

    Attributes:
        cluster: which one.
        partitions: partition counts of the topics that our user may see, by name; as of the last `refresh`.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: what `clients.ask` and `clients.make` raise: authentication fails, or the like.
        Refused: AB423, it is another cluster than the declared one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._lookup = ClusterLookup(cluster, _ANSWER_SECONDS)
        self._nodes: tuple[int, ...] = ()
        self.partitions: dict[str, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the brokers and topics again; errors as those of the class."""
        metadata = self._lookup.metadata(_CONNECT_SECONDS)
        if other := self.cluster.other_cluster(metadata.cluster_id):
            raise Refused(other)
        self._nodes = tuple(metadata.brokers)
        self.partitions = {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def close(self) -> None:
        """Close the connection."""
        self._lookup.close()

    # --- which there are ---------------------------------------------------------------------------------------------

    def kinds(self) -> dict[str, str]:
        """Return all visible groups, each with the protocol of its members, empty where it never had any.

        Raises:
            Unreachable: AB310, a broker does not answer: its groups would be missing.
        """
        try:
            return asking.kinds(self.cluster, self._nodes)
        except (ConnectionLost, BrokerError) as error:
            raise unreachable(self.cluster, f"its groups are not listed: {error}") from None

    def chosen(self, named: Sequence[str]) -> tuple[list[str], list[Problem]]:
        """Return the groups that names and regular expressions choose, and those that are not handled, with the reason.

        Flows' own groups are never chosen.

        Args:
            named: full matches, each as it stands first and then as an expression; `all` is every group.

        Raises:
            DeclaredInputError: a group that is named in full is missing, or nothing matches an expression (AB625); one
                is not handled (AB629), or refused to our user (AB313).
            Unreachable: AB310, no answer.
        """
        kinds = self.kinds()
        literal = [name for name in dict.fromkeys(named) if is_literal(name) and name != ALL]
        problems = [why for name in literal if (why := self.against(name, kinds, may_create=False)) is not None]
        items = choosing(named)
        idle = [item for item in items.idle(kinds) if item not in literal and item != EVERYTHING]
        if problems := [*problems, *(self._none_matches(item, kinds) for item in idle)]:
            raise DeclaredInputError(problems)
        matching = [name for name in sorted(kinds) if name in items]
        others = [self.not_handled(name, kinds[name]) for name in matching if kinds[name] in _STATE_OF]
        return [name for name in matching if not _no_consumers(name, kinds[name])], others

    def others(self) -> dict[str, Problem]:
        """Return the groups whose state is more than committed offsets, each with why it cannot be moved.

        Raises:
            Unreachable: AB310, no answer.
        """
        return {name: self.not_handled(name, kind) for name, kind in sorted(self.kinds().items()) if kind in _STATE_OF}

    def not_handled(self, group: str, protocol: str) -> Problem:
        """Return the problem that a group's offsets cannot be moved."""
        return Problem("AB629", self._where(group), *_no_consumers(group, protocol))

    def against(self, group: str, kinds: Mapping[str, str], may_create: bool) -> Problem | None:
        """Return the objection to writing offsets of a group; None for none."""
        if _is_ours(group) or _no_consumers(group, kinds.get(group, "")):
            return self.not_handled(group, kinds.get(group, ""))
        return None if group in kinds or may_create else self.why_unknown(group, kinds)

    def why_unknown(self, group: str, there: Collection[str] = ()) -> Problem:
        """Return why a group is not listed: it is refused to our user, or missing.

        Args:
            group: which one.
            there: existing groups, for suggestions.

        Raises:
            Unreachable: AB310, no answer.
        """
        try:
            self.committed([group])
        except EnvironmentFault as error:
            if error.problems[0].code == "AB313":
                return error.problems[0]
            raise
        return Problem("AB625", self._where(group), f"there is no such group{did_you_mean(group, there)}", _CORRECT)

    def _none_matches(self, item: str, there: Collection[str]) -> Problem:
        message = "there is no group of this name, nor one that it matches as a regular expression"
        return Problem("AB625", self._where(item), f"{message}{did_you_mean(item, there)}", _CORRECT)

    # --- what they have committed, and where logs end ----------------------------------------------------------------

    def committed(self, groups: Sequence[str]) -> list[Committed]:
        """Return what groups have committed, by group, topic and partition, whatever the bounds of the logs.

        Raises:
            EnvironmentFault: AB313, with every group that our user may not DESCRIBE.
            Unreachable: AB310, no answer.
        """
        found, wrong = self.told(groups)
        if wrong:
            raise together([EnvironmentFault(problem) for problem in wrong.values()])
        return found

    def told(self, groups: Sequence[str]) -> tuple[list[Committed], dict[str, Problem]]:
        """Return what groups have committed as `committed` does, and the errors of the other groups.

        Raises:
            Unreachable: AB310, no answer.
        """
        found: list[Committed] = []
        wrong: dict[str, Problem] = {}
        if not groups:
            return found, wrong
        try:
            answers = asking.committed(self.cluster, groups)
        except (ConnectionLost, BrokerError) as error:
            raise unreachable(self.cluster, f"committed offsets of groups cannot be read: {error}") from None
        for group in sorted(answers):
            answer = answers[group]
            if isinstance(answer, BrokerError):
                wrong[group] = self._refusal(answer.code, "DESCRIBE", group)
                continue
            for (topic, partition), one in sorted(answer.items()):
                epoch = None if one.epoch < 0 else one.epoch
                found.append(Committed(group, topic, partition, one.offset, one.metadata, epoch))
        return found, wrong

    def bounds(self, logs: Iterable[Log]) -> dict[Log, LogBounds]:
        """Return where logs begin and end; those that are missing, or have no leader now, are left out.

        Raises:
            EnvironmentFault: AB313, with every topic that we may not DESCRIBE.
            Unreachable: AB310, no answer.
        """
        return self._lookup.bounds(self._known(logs))

    def ids(self, topics: Iterable[str]) -> dict[str, str | None]:
        """Return the ids of topics, None where the brokers have none; topics that are not there are left out.

        Raises:
            EnvironmentFault: AB313, with the topic that our user may not DESCRIBE.
            Unreachable: AB310, no answer.
        """
        return {name: topic.topic_id for name, topic in self._lookup.topics(sorted(set(topics))).items()}

    def at_time(self, logs: Iterable[Log], milliseconds: int) -> dict[Log, int | None]:
        """Return the first offset of each log whose record is not older than a time, None where all are older.

        Logs that are not there, or have no leader just now, are left out.

        Args:
            logs: which ones.
            milliseconds: since 1970.

        Raises:
            EnvironmentFault: AB313, with every topic that we may not DESCRIBE.
            Unreachable: AB310, no answer.
        """
        return self._lookup.at_time(self._known(logs), milliseconds)

    def without_leader(self, log: Log) -> Problem:
        """Return the problem that a partition has no leader."""
        where = f"{self.cluster.where}, topic {log[0]}, partition {log[1]}"
        return Problem("AB630", where, "it has no leader now", "wait until its brokers are up")

    def _known(self, logs: Iterable[Log]) -> list[Log]:
        return sorted({(topic, number) for topic, number in logs if 0 <= number < self.partitions.get(topic, 0)})

    # --- committing --------------------------------------------------------------------------------------------------

    def commit(
        self, moves: Mapping[str, Sequence[Move]], place: Callable[[Move], Log] = lambda move: move.log
    ) -> dict[Move, Problem]:
        """Commit offsets for groups, without membership and with leader epoch -1; return what failed by move.

        Args:
            moves: by group.
            place: returns the partition that an offset is committed for.
        """
        portions = {
            group: [
                {place(move): CommittedPosition(move.after, move.metadata) for move in some} for some in _by_size(these)
            ]
            for group, these in moves.items()
        }
        wrong = asking.commit(self.cluster, portions)
        return {
            move: problem
            for group, error in wrong.items()
            for move in moves[group]
            if (problem := self._why_not(group, place(move), error)) is not None
        }

    def _why_not(self, group: str, log: Log, error: Exception) -> Problem | None:
        """Return why an offset of a group was not committed; None where it was, though others were not."""
        if isinstance(error, asking.OffsetRefusal):
            # After a refusal nothing more of the group is written.
            code = error.codes.get(log)
            return None if code is None and log in error.done else self._not_committed(group, log, code or error.first)
        if isinstance(error, BrokerError):
            return self._not_committed(group, log, error.code)
        return unreachable(self.cluster, f"group {group}: {error}; whether it took the offsets is unknown").problems[0]

    def _not_committed(self, group: str, log: Log, code: int) -> Problem:
        if code in _HAS_MEMBERS:
            remedy = "stop all consumers of the group and wait until they have left it, then write again"
            message = f"the group has members ({error_name(code)})"
            return Problem("AB626", self._where(group), message, remedy)
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return refused(self.cluster, "READ", f"topic {log[0]}")
        problem = self._refusal(code, "READ", group)
        place = f"{problem.where}, topic {log[0]}, partition {log[1]}"
        return replace(problem, where=place) if problem.code == "AB630" else problem

    def _refusal(self, code: int, operation: str, group: str) -> Problem:
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return refused(self.cluster, operation, f"group {group}")
        return Problem("AB630", self._where(group), f"the cluster answers {error_name(code)}", _LOOK)

    # --- what failures are called ------------------------------------------------------------------------------------

    def _where(self, group: str) -> str:
        return f"{self.cluster.where}, group {group}"


_LOOK = "mend what the cluster names, then try again"


def _is_ours(group: str) -> bool:
    return group.startswith(OURS)


def _no_consumers(group: str, protocol: str) -> tuple[str, str] | tuple[()]:
    """Return why the offsets of a group are not handled, and the remedy; empty for consumer groups."""
    if _is_ours(group):
        return "is the group of a flow, and holds the flow's positions", "use --flow"
    if protocol in _CONSUMERS:
        return ()
    why = _STATE_OF.get(protocol, f"its members use the protocol {protocol}")
    return f"is no group of consumers: {why}; not handled", "use the tools that come with it"


def _by_size(moves: Sequence[Move]) -> Iterator[list[Move]]:
    """Yield moves in portions that a coordinator takes at once."""
    portion: list[Move] = []
    size = 0
    for move in moves:
        needed = len(move.topic) + len(move.owner) + len(move.metadata.encode()) + _OVERHEAD
        if portion and size + needed > _COMMIT_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(move)
        size += needed
    if portion:
        yield portion
