"""The file of `--resume`: what is compared, between which offsets, and how far; a comparison that was killed goes on.

`drive` keeps it. It is written as a whole, beside the old one, which it then replaces.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.replicator.shares import Place
from reconciler.verify.slices import Bounds, Progress
from reconciler.verify.survey import Wanted

_FORMAT = 1


@dataclass
class FlowState:
    """How far one flow is compared.

    Attributes:
        partitions: bounds and progress of each.
        without: partitions that have no copy.
        unseen: why others could not be looked at.
        notices: what is to be known of it.
        warnings: what makes the comparison say less.
    """

    partitions: list[tuple[Bounds, Progress]] = field(default_factory=list)
    without: list[Place] = field(default_factory=list)
    unseen: list[Problem] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def with_more(self, seen: FlowState) -> FlowState:
        """Return this with the partitions of a later look that it does not have; what is compared keeps its ends."""
        known = {(bounds.topic, bounds.partition) for bounds, _ in self.partitions}
        known |= {(place.topic, place.partition) for place in self.without}
        more = [one for one in seen.partitions if (one[0].topic, one[0].partition) not in known]
        without = [place for place in seen.without if (place.topic, place.partition) not in known]
        return replace(seen, partitions=[*self.partitions, *more], without=[*self.without, *without])


class Resume:
    """One such file, or none.

    Args:
        path: where it is; None keeps nothing.
        topology: name of the topology.
        wanted: which part of the flows is compared.
    """

    def __init__(self, path: Path | None, topology: str, wanted: Wanted) -> None:
        self._path = path
        self._head = {"format": _FORMAT, "topology": topology, "wanted": json.loads(json.dumps(asdict(wanted)))}

    def load(self) -> dict[str, FlowState]:
        """Return what is kept of each flow; empty when there is no file yet.

        Raises:
            EnvironmentFault: AB611, it cannot be read; AB610, it is of another comparison.
        """
        if self._path is None or not self._path.exists():
            return {}
        try:
            value = json.loads(self._path.read_text(encoding="utf-8"))
            head = {name: value[name] for name in self._head}
            flows = {name: _flow_state(flow) for name, flow in value["flows"].items()}
        except OSError as error:
            raise self._fault(error) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            head, flows = {}, {}
        if head != self._head:
            what = (
                "is not the file of this comparison: the topology, --topics, --target or --from-timestamp were others"
            )
            remedy = "give it another file, or delete this one to begin anew"
            raise EnvironmentFault(Problem("AB610", str(self._path), what, remedy))
        return flows

    def save(self, flows: dict[str, FlowState]) -> None:
        """Keep how far all flows are.

        Raises:
            EnvironmentFault: AB611, it cannot be written.
        """
        if self._path is None:
            return
        text = json.dumps(self._head | {"flows": {name: _value(flow) for name, flow in flows.items()}})
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(self._path)
        except OSError as error:
            raise self._fault(error) from None

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
    }


def _flow_state(value: dict[str, Any]) -> FlowState:
    partitions = [(Bounds.from_json(bounds), Progress.from_json(progress)) for bounds, progress in value["partitions"]]
    without = [Place(*place) for place in value["without"]]
    # A file of an older release has no notices, or no warnings.
    names = ("unseen", "notices", "warnings")
    unseen, notices, warnings = ([Problem(**one) for one in value.get(name, ())] for name in names)
    return FlowState(partitions, without, unseen, notices, warnings)
