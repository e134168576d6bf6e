"""Which provisioner carries a plan out: chosen before the plan is made, made once it is agreed on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reconciler.cli.common import stderr_console
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Step

if TYPE_CHECKING:
    from reconciler.provision.work import Provisioner

VARIABLE = "ANABRANCH_PROVISIONER"
"""The variable that chooses where no option does."""

Choice = Literal["auto", "direct", "pulumi"]

ChosenProvisioner = Annotated[
    Choice,
    typer.Option(
        "--provisioner",
        envvar=VARIABLE,
        help="What carries it out: Kafka's admin requests (direct), or Pulumi. auto takes Pulumi where its command and "
        "a project are.",
    ),
]
PulumiDir = Annotated[
    Path | None,
    typer.Option(
        "--pulumi-dir",
        metavar="DIR",
        help="The folder of the Pulumi project: by default this one where it holds one, else the folder pulumi, made "
        "when it is missing.",
    ),
]


@dataclass(frozen=True)
class Provisioning:
    """How a plan will be carried out.

    Attributes:
        files: that declare the topology.
        project: folder of the Pulumi project; None for the provisioner `direct`.
    """

    files: Sequence[Path]
    project: Path | None = None

    def check_part(self, topics: Collection[str]) -> None:
        """Make sure that a plan for some remote topics alone can be carried out.

        Raises:
            Refused: AB440, a stack is applied whole.
        """
        if topics and self.project is not None:
            message = f"are applied whole, and --target names {', '.join(topics)} alone"
            raise Refused(Problem("AB440", "Pulumi stacks", message, "use --provisioner direct"))

    def make(
        self, topology: Topology, progress: Callable[[Step], None], may_change: Callable[[str], None]
    ) -> Provisioner:
        """Return the provisioner.

        Args:
            topology: the declaration.
            progress: called for each finished step.
            may_change: asked right before each change of a target, by alias.

        Raises:
            EnvironmentFault: AB370, there is no `pulumi` that could be used.
        """
        if self.project is None:
            from reconciler.provision.direct import DirectProvisioner

            return DirectProvisioner(topology, progress, may_change)
        _find_program()
        from stacks.automation import PulumiProvisioner

        return PulumiProvisioner(topology, self.files, self.project, progress, may_change)


def provisioning(choice: Choice, folder: Path | None, files: Sequence[Path]) -> Provisioning:
    """Decide how a plan will be carried out; what `auto` has found is printed to stderr.

    Raises:
        typer.BadParameter: options that do not go together.
        EnvironmentFault: AB370, Pulumi is demanded and there is no such command.
    """
    if choice == "direct":
        if folder is not None:
            message = "it is the folder of a Pulumi project, and the provisioner is direct"
            raise typer.BadParameter(message, param_hint="--pulumi-dir")
        return Provisioning(files)
    _find_program()
    from stacks.project import default_folder, is_ours

    project = folder or default_folder(Path())
    is_there = shutil.which("pulumi") is not None
    if choice == "auto":
        if not is_ours(project):
            if folder is not None:
                message = "no project of Anabranch is there; --provisioner pulumi makes one"
                raise typer.BadParameter(message, param_hint="--pulumi-dir")
            return Provisioning(files)
        if not is_there:
            stderr_console().print(f"directly: a Pulumi project is in {project}, and no pulumi on PATH", style="dim")
            return Provisioning(files)
        stderr_console().print(f"with Pulumi: its project is in {project}", style="dim")
    elif not is_there:
        remedy = "install it (https://www.pulumi.com/docs/install/), or use --provisioner direct"
        raise EnvironmentFault(Problem("AB370", "Pulumi", "there is no command `pulumi` on PATH", remedy))
    if any(str(path) == "-" for path in files):
        message = "Pulumi reads the files again: - cannot be read twice"
        raise typer.BadParameter(message, param_hint="FILE")
    return Provisioning(files, project)


def _find_program() -> None:
    """Let `stacks` be imported: in an installed package it lies among the data, outside of the import path."""
    from reconciler.declare.documents.resources import stacks_folder

    home = str(stacks_folder().parent)
    if home not in sys.path:
        sys.path.insert(0, home)
