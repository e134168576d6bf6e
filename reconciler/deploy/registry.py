"""Which deployments this machine has of a topology: for those that are declared no longer, or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, make_private, read_json, state_home, write_private
from reconciler.model.base.shape import WORD, Misfit, fields, listed, one_of
from reconciler.model.base.text import json_text
from reconciler.model.declared.deployment import APPLIED_KINDS, DeploymentKind, SystemdScope


@dataclass(frozen=True)
class RegisteredDeployment:
    """Where a data centre was deployed.

    Attributes:
        datacenter: its name.
        kind: one that `apply` carries out.
        folder: with its files.
        scope: whose units, of the kind `systemd`.
    """

    datacenter: str
    kind: DeploymentKind
    folder: str
    scope: SystemdScope


_KINDS, _SCOPES = one_of(*APPLIED_KINDS), one_of("system", "user")
_SHAPE = {"datacenter": WORD, "kind": _KINDS, "folder": WORD, "scope": _SCOPES}


class Registry:
    """The deployments of one topology that this user has made on this machine.

    Args:
        topology: its name.
        environ: the variables of this process.
    """

    def __init__(self, topology: str, environ: Mapping[str, str]) -> None:
        self._path = state_home(environ) / "anabranch" / "deployments" / f"{topology}.json"

    def read(self) -> tuple[RegisteredDeployment, ...]:
        """Return what is registered.

        Raises:
            EnvironmentFault: AB761, it cannot be read.
        """
        try:
            value = fields(read_json(self._path), {"deployments": listed(lambda one: fields(one, _SHAPE))})
        except FileNotFoundError:
            return ()
        except (OSError, UnreadableFile, Misfit) as error:
            why = error.strerror if isinstance(error, OSError) else error
            remedy = "remove it: what runs of declared data centres is found by their folders"
            raise EnvironmentFault(Problem("AB761", str(self._path), f"cannot be read: {why}", remedy)) from None
        return tuple(RegisteredDeployment(**one) for one in value["deployments"])

    def add(self, deployment: RegisteredDeployment) -> None:
        """Register a deployment."""
        self._write(dict.fromkeys((*self.read(), deployment)))

    def remove(self, deployment: RegisteredDeployment) -> None:
        """Take a deployment out."""
        self._write(dict.fromkeys(one for one in self.read() if one != deployment))

    def _write(self, deployments: Mapping[RegisteredDeployment, None]) -> None:
        told = [{name: cast("str", getattr(one, name)) for name in _SHAPE} for one in deployments]
        try:
            make_private(self._path.parent)
            write_private(self._path, f"{json_text({'deployments': told}, indent=2)}\n")
        except OSError as error:
            message = f"cannot be written: {error.strerror}"
            raise EnvironmentFault(Problem("AB760", str(self._path), message, "correct its rights")) from None
