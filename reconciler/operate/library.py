"""`load` and `apply` as functions of the library; `plan`, `status` and `drift` are beside what they call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reconciler.model.declared.topology import Topology
from reconciler.operate.applying import EVERY_PLAN, Applied, Applying, ApplyOptions, Approval
from reconciler.operate.reporter import SILENT, Reporter

_AS_DECLARED = ApplyOptions()


def load(files: Iterable[str | Path], reporter: Reporter = SILENT) -> Topology:
    """Return the one topology that some files declare; connects to nothing.

    Args:
        files: topology files; several are one topology.
        reporter: receives warnings.

    Raises:
        DeclaredInputError: AB1xx, with every problem of every file.
    """
    # Reading YAML takes long to import.
    from reconciler import declare

    return declare.load(tuple(map(Path, files)), warn=lambda warning: reporter.warn((warning,)))


def apply(
    topology: Topology,
    options: ApplyOptions = _AS_DECLARED,
    approval: Approval = EVERY_PLAN,
    reporter: Reporter = SILENT,
) -> Applied:
    """Make the target clusters what is declared, and put the declaration in force there.

    Args:
        topology: what is declared.
        options: what is applied, and how.
        approval: receives the plan before it is carried out, and may decline it by raising an exception.
        reporter: receives progress and notices.

    Returns:
        The plan and what became of every step; `outcome.is_complete` is true where all of it was done. Failures of
        single steps are in there, and are not raised.

    Raises:
        InvalidArgument: `clusters` or `target`, a name is unknown.
        Locked: AB501, another apply is at work and did not end within `options.wait` seconds.
        Refused: AB4xx, a guardrail stands in the way, or the clusters changed meanwhile (AB407).
        Unreachable: AB310, some clusters do not answer.
        EnvironmentFault: AB3xx, a cluster cannot be read or changed.
    """
    return Applying(topology, options, reporter).run(approval)
