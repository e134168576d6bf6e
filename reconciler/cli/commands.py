"""Which commands there are, and where: the file of a command is imported when it is run, or its own help is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from reconciler.cli.common import as_usage
from reconciler.cli.helping import readable

MODULES: Mapping[str, str] = {
    "init": "init",
    "validate": "validate",
    "fmt": "fmt",
    "graph": "graph",
    "explain": "explain",
    "doctor": "doctor",
    "plan": "plan",
    "apply": "apply",
    "drift": "drift",
    "adopt": "adopt",
    "destroy": "destroy",
    "recreate": "recreate",
    "deployments": "deploy.deployments",
    "render": "deploy.render",
    "ci": "deploy.ci",
    "reconcile": "reconcile",
    "replicate": "replicate",
    "status": "look.status",
    "lag": "look.lag",
    "flows": "look.flows",
    "topics": "look.topics",
    "groups": "look.groups",
    "describe": "look.describe",
    "events": "look.events",
    "metrics": "metrics",
    "serve": "serve",
    "pause": "steer.pause",
    "resume": "steer.resume",
    "restart": "steer.restart",
    "failover": "failover",
    "failback": "failback",
    "verify": "verify",
    "offsets": "offsets.offsets",
    "convert": "migrate.convert",
    "mirror-maker2": "migrate.mirror_maker2",
    "mirror-maker": "migrate.mirror_maker1",
    "connect-standalone": "migrate.connect_standalone",
    "connect-distributed": "migrate.connect_distributed",
    "release": "migrate.release",
    "schema": "schema",
    "demo": "trying.demo",
    "sandbox": "trying.sandbox",
    "docs": "look.docs",
    "version": "look.version",
}
"""By command the module of this room: what it holds under its own name is the command, or the commands of a group."""


class Commands(Mapping[str, Any]):
    """All commands, by name; each is made when it is taken."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, MODULES[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def _made(name: str, module: str) -> Any:
    found = getattr(import_module(f"reconciler.cli.{module}"), module.rpartition(".")[2])
    if isinstance(found, typer.Typer):
        command = get_command(found)
    else:
        one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        one.command(name)(as_usage(found))
        command = get_command(one)
    command.name = name
    return readable(command)
