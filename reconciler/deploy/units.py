"""Units of systemd: one template for each process, of which a generation is an instance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reconciler.deploy.programs import command_of
from reconciler.model.declared.deployment import SystemdScope
from reconciler.model.planning.deployments import Process

_PLAIN = re.compile(r"[A-Za-z0-9@=:,./_+-]+")
_STOP_SECONDS = 60
# Java compiles while it runs, so memory that is written and executed must stay allowed.
_HARDENING = (
    *("NoNewPrivileges=yes", "LockPersonality=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes"),
    *("SystemCallArchitectures=native", "UMask=0077"),
)
# What a manager of a user cannot give without namespaces of users.
_HARDENING_OF_SYSTEM = (
    *("ProtectSystem=strict", "ProtectHome=read-only", "PrivateTmp=yes", "PrivateDevices=yes"),
    *("ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes", "ProtectControlGroups=yes"),
    *("ProtectClock=yes", "ProtectHostname=yes", "RestrictNamespaces=yes", "CapabilityBoundingSet="),
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
)


def template_name(process: Process) -> str:
    """Return the name of the template of a process, without `@.service`."""
    return f"anabranch-{process.topology}-{process.datacenter}-{process.name}"


def instance(process: Process, number: int) -> str:
    """Return the name of the unit of a generation."""
    return f"{template_name(process)}@{number}.service"


def unit(process: Process, folder: Path, state: Path) -> str:
    """Return the text of the template of a process.

    Args:
        process: what it runs.
        folder: of the data centre.
        state: folder of the process.
    """
    return "\n".join(_lines(process, folder, state)) + "\n"


def _lines(process: Process, folder: Path, state: Path) -> Iterator[str]:
    limits = dict(process.limits)
    scope: SystemdScope = "user" if limits["scope"] == "user" else "system"
    yield "# Written by `anabranch apply`, and written anew when something of it changes."
    yield from ("[Unit]", f"Description=Anabranch {process.name} of {process.datacenter}, topology {process.topology}")
    if scope == "system":
        yield from ("Wants=network-online.target", "After=network-online.target")
    # However often it ends, it is started again.
    yield from ("StartLimitIntervalSec=0", "", "[Service]", "Type=exec")
    yield f"ExecStart={' '.join(map(quoted, command_of(process, folder, state)))}"
    yield f"Environment={quoted(f'PYSPARK_PYTHON={process.python}')} PYTHONUNBUFFERED=1"
    if "environment-file" in limits:
        yield f"EnvironmentFile={limits['environment-file'].replace('%', '%%')}"
    yield f"WorkingDirectory={str(state).replace('%', '%%')}"
    if scope == "system":
        yield f"User={limits['user']}"
    yield from ("Restart=always", "RestartSec=2", "KillMode=mixed", f"TimeoutStopSec={_STOP_SECONDS}")
    yield "LimitNOFILE=65536"
    if "memory" in limits:
        yield f"MemoryMax={limits['memory']}"
    if "cpus" in limits:
        yield f"CPUQuota={float(limits['cpus']) * 100:.0f}%"
    yield from _HARDENING
    if scope == "system":
        yield from _HARDENING_OF_SYSTEM
        yield f"ReadWritePaths={quoted(str(state))}"
    yield from ("", "[Install]", f"WantedBy={'default' if scope == 'user' else 'multi-user'}.target")


def quoted(word: str) -> str:
    """Return a word of a command as systemd reads it: without specifiers, variables and quotes of its own.

    Source: systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers".
    """
    safe = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return safe
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
