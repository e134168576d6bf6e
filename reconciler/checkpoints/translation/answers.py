"""Translates offsets for users: also without the source, and for a flow that is failed over.

Records behind the cuts of a failed-over flow were written to its copies by other producers: they have no source offset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.translation.translate import Translator
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.offsets.translation import Question, Translated
from reconciler.model.recorded.failover import Cut, FailedOver
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ
from reconciler.state.failovers import failed_over
from reconciler.state.ownership import Ownership


@dataclass(frozen=True)
class TranslationAnswers:
    """The offsets on the other side of a flow.

    Attributes:
        offsets: in the order of the questions.
        cut: the state of the flow, where it is failed over and its copies are cut; else None.
    """

    offsets: tuple[Translated, ...]
    cut: FailedOver | None


def answers(
    topology: Topology, flow: Flow, questions: Collection[Question], *, source_lost: bool = False
) -> TranslationAnswers:
    """Return the offsets on the other side for some offsets of a flow's topics.

    Args:
        topology: the declaration.
        flow: one of its flows.
        questions: the offsets.
        source_lost: whether the source is not read: offsets that need it are `unknown` then.

    Raises:
        AnabranchError: as `Translator.refresh`.
    """
    source, target = None if source_lost else topology.clusters[flow.source], topology.clusters[flow.target]
    with Translator(source, target, flow, topology.name) as translator:
        found = translator.answers(questions)
    state = failed_over(topology.name, Ownership(target, topology.name).read_all().others).get(flow.name)
    if state is None or not state.cuts:
        return TranslationAnswers(tuple(found), None)
    bounded = _Bounded.look(flow, (source, target), state, {(one.topic, one.partition) for one in questions})
    return TranslationAnswers(tuple(map(bounded, questions, found)), state)


@dataclass(frozen=True)
class _Bounded:
    """Limits answers to the cuts, by original partition; a lost source has no bounds."""

    cuts: Mapping[Log, Cut]
    at_source: Mapping[Log, LogBounds]
    at_target: Mapping[Log, LogBounds]

    @classmethod
    def look(
        cls, flow: Flow, clusters: tuple[Cluster | None, Cluster], state: FailedOver, logs: Collection[Log]
    ) -> _Bounded:
        """Return the cuts that still hold: those with the same topics on both sides."""
        # Where its original is recreated, all records of the copy go to it.
        named = {log: cut for log in logs if (cut := state.cuts.get(log[0])) is not None and cut.anew != "made"}
        named = {log: cut for log, cut in named.items() if cut.remote == flow.remote_topic(log[0])}
        notes = {log: OffsetMetadata.parse(cut.note(log[1])) for log, cut in named.items()}
        source_ids, at_source = _looked_at(clusters[0], {log: log for log in named})
        target_ids, at_target = _looked_at(clusters[1], {log: (cut.remote, log[1]) for log, cut in named.items()})
        same = {
            log: cut
            for log, cut in named.items()
            if not differ(notes[log].source_id, source_ids.get(log))
            and not differ(notes[log].target_id, target_ids.get(log))
        }
        return cls(same, at_source, at_target)

    def __call__(self, question: Question, found: Translated) -> Translated:
        log = question.topic, question.partition
        if (cut := self.cuts.get(log)) is None:
            return found
        copied, end = cut.at(question.partition)
        remote = f"{cut.remote}/{question.partition}"
        if question.way == "downstream":
            what = "nothing" if copied is None else f"up to {copied}"
            why = f"{remote} had copied {what} when its flow was failed over"
            if copied is not None and question.offset >= copied and found.offset is not None:
                # Outside of transactions a copy may hold more than its syncs cover when its flow ended.
                end = min(end, found.offset)
            answer = _up_to(question.offset, found, (copied or 0, end), why)
            return _checked(answer, self.at_target.get(log), remote)
        if copied is None:
            return Translated(None, "unknown", f"{remote} had copied nothing when its flow was failed over")
        why = f"{remote} was cut at {end} when its flow was failed over: what is behind that was written to it since"
        answer = _up_to(question.offset, found, (end, copied), why)
        return _checked(answer, self.at_source.get(log), f"{question.topic}/{question.partition}")


def _looked_at(cluster: Cluster | None, logs: Mapping[Log, Log]) -> tuple[dict[Log, str | None], dict[Log, LogBounds]]:
    """Return topic ids and log bounds, by the keys of `logs`."""
    if cluster is None or not logs:
        return {}, {}
    with closing(Groups(cluster)) as groups:
        ids, bounds = groups.ids({topic for topic, _ in logs.values()}), groups.bounds(logs.values())
    return (
        {log: ids.get(there[0]) for log, there in logs.items()},
        {log: bounds[there] for log, there in logs.items() if there in bounds},
    )


def _up_to(offset: int, found: Translated, ends: tuple[int, int], why: str) -> Translated:
    """Return an answer that is at most the cut.

    Args:
        offset: the offset to translate.
        found: its translation without the cut.
        ends: the cut on the side of `offset`, and on the other side.
        why: the reason where the offset is behind the cut.
    """
    here, there = ends
    if offset > here:
        return Translated(there, "ahead", why)
    if offset == here or (found.offset is not None and found.offset >= there):
        return Translated(there, "end")
    return found


def _checked(answer: Translated, bounds: LogBounds | None, name: str) -> Translated:
    """Return an answer, unless its offset is deleted."""
    if answer.offset is None or bounds is None or answer.offset >= bounds.start:
        return answer
    why = f"offset {answer.offset} of {name} is deleted: its log begins at {bounds.start}"
    return Translated(None, "expired", why)
