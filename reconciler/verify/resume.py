"""The file of `--resume`: bounds and progress of a comparison, so that it goes on after a kill.

It is written as a whole beside the old one, which it then replaces. A writer of the file decides what is no longer
compared, so only this user may write it, and its content is checked: types, and flows, clusters and topics (`origin`).
It is not signed: a writer of the file could read the key as well.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reconciler.model.base.declared_types import check
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_json, write_private
from reconciler.model.offsets.verification import KINDS
from reconciler.replicator.partition.shares import Place
from reconciler.verify.comparison.compaction import Compaction
from reconciler.verify.origin import Origin
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.verify.survey import VerifyFilter

_FORMAT = 2
_BEGIN_ANEW = "give it another file, or delete this one to begin anew"
# Some hundred bytes a partition; what a compacted copy lacks so far takes more.
_MOST_BYTES = 256 * 2**20


@dataclass
class FlowState:
    """Progress of one flow.

    Attributes:
        partitions: bounds and progress of each.
        without: partitions that have no copy.
        unseen: why others could not be read.
        notices: notices about the flow.
        warnings: problems that make the comparison less complete.
        origin: the flow and clusters that this belongs to; None before that is known.
    """

    partitions: list[tuple[SliceBounds, SliceProgress]] = field(default_factory=list)
    without: list[Place] = field(default_factory=list)
    unseen: list[Problem] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    origin: Origin | None = None

    def with_more(self, seen: FlowState) -> FlowState:
        """Return this with new partitions of a later survey; partitions that are known keep their bounds."""
        known = {(bounds.topic, bounds.partition) for bounds, _ in self.partitions}
        known |= {(place.topic, place.partition) for place in self.without}
        more = [one for one in seen.partitions if (one[0].topic, one[0].partition) not in known]
        without = [place for place in seen.without if (place.topic, place.partition) not in known]
        return replace(seen, partitions=[*self.partitions, *more], without=[*self.without, *without])


class Resume:
    """One such file, or none.

    Args:
        path: the file; None saves nothing.
        topology: name of the topology.
        wanted: the part of the flows to compare.
    """

    def __init__(self, path: Path | None, topology: str, wanted: VerifyFilter) -> None:
        self._path = path
        self._head = {"format": _FORMAT, "topology": topology, "wanted": json.loads(json.dumps(asdict(wanted)))}

    def load(self) -> dict[str, FlowState]:
        """Return the saved state by flow; empty if there is no file yet.

        Raises:
            EnvironmentFault: AB611, it cannot be read; AB610, it is of another comparison; AB615, it is damaged.
        """
        if self._path is None:
            return {}
        try:
            value = read_json(self._path, _MOST_BYTES)
            head = {name: value[name] for name in self._head}
            flows = {} if head != self._head else {name: _flow_state(one) for name, one in value["flows"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._fault(error) from None
        except UnreadableFile as error:
            raise self._damaged(str(error), error.line) from None
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
            why = "does not hold what such a file does"
            raise self._damaged(why) from None
        if head != self._head:
            what = (
                "is not the file of this comparison: the topology, --topics, --target or --from-timestamp were others, "
                "or it was written by another release"
            )
            raise EnvironmentFault(Problem("AB610", str(self._path), what, _BEGIN_ANEW))
        return flows

    def save(self, flows: dict[str, FlowState]) -> None:
        """Write the state of all flows.

        Raises:
            EnvironmentFault: AB611, it cannot be written.
        """
        if self._path is None:
            return
        text = json.dumps(self._head | {"flows": {name: _value(flow) for name, flow in flows.items()}})
        try:
            write_private(self._path, text)
        except OSError as error:
            raise self._fault(error) from None

    def _damaged(self, why: str, line: int = 0) -> EnvironmentFault:
        where = f"{self._path}:{line}" if line else str(self._path)
        return EnvironmentFault(Problem("AB615", where, why, _BEGIN_ANEW))

    def _fault(self, error: OSError) -> EnvironmentFault:
        what = f"cannot be read or written: {error.strerror or error}"
        remedy = "name a file that may be written, in a folder that is there (--resume)"
        return EnvironmentFault(Problem("AB611", str(self._path), what, remedy))


def _value(flow: FlowState) -> dict[str, Any]:
    return {
        "partitions": [[bounds.to_json(), progress.to_json()] for bounds, progress in flow.partitions],
        "without": [list(place) for place in flow.without],
        "unseen": [asdict(problem) for problem in flow.unseen],
        "notices": [asdict(problem) for problem in flow.notices],
        "warnings": [asdict(problem) for problem in flow.warnings],
        "origin": None if flow.origin is None else asdict(flow.origin),
    }


def _flow_state(value: dict[str, Any]) -> FlowState:
    """Read one flow; raises KeyError, TypeError or ValueError where it is of another shape."""
    partitions = [
        (SliceBounds.from_json(bounds), SliceProgress.from_json(progress)) for bounds, progress in value["partitions"]
    ]
    without = [Place(*place) for place in value["without"]]
    names = ("unseen", "notices", "warnings")
    unseen, notices, warnings = ([Problem(**one) for one in value[name]] for name in names)
    state = FlowState(partitions, without, unseen, notices, warnings, Origin(**value["origin"]))
    check(state)
    for _, progress in partitions:
        Compaction.from_json(progress.compaction)
        if not progress.findings.by_kind.keys() <= set(KINDS):
            message = "a kind of difference that is not known"
            raise ValueError(message)
    return state
