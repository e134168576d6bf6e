"""Completion of names in a shell: flows and clusters of the topology files on the command line, and error codes.

The shell calls it at each press of the key: it connects to nothing, and completes nothing where a file cannot be read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import typer

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.topology import Topology


def flow_names(incomplete: str) -> list[str]:
    """Return the names of declared flows that begin with what is typed."""
    topology = _topology()
    return _beginning(incomplete, () if topology is None else (flow.name for flow in topology.flows))


def cluster_aliases(incomplete: str) -> list[str]:
    """Return the aliases of declared clusters that begin with what is typed; of a comma list the last one counts."""
    topology = _topology()
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{alias}" for alias in _beginning(last, () if topology is None else topology.aliases)]


def error_codes(incomplete: str) -> list[str]:
    """Return the error codes that begin with what is typed, once something is typed."""
    from reconciler.declare.documents.resources import errors_text
    from reconciler.report.error_codes import entries

    return _beginning(incomplete, entries(errors_text())) if incomplete.startswith("A") else []


def _topology() -> Topology | None:
    from reconciler.cli.common import default_files
    from reconciler.declare import load

    with contextlib.suppress(AnabranchError, OSError, typer.BadParameter):
        # The option that is completed has no value yet, so typer has not parsed the words of the line.
        line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        named = [Path(word) for word in line.split() if word.endswith((".yaml", ".yml"))]
        return load(tuple(named or default_files()))
    return None


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
