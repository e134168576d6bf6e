"""A program that stands for `kubectl`: it answers from a file, in the words of the real one, and records each call."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.programs import write_program

SERVER = "https://127.0.0.1:6443"
_PROGRAM = f"""\
#!{sys.executable}
import json, sys
state = json.load(open("@STATE@"))
given = sys.stdin.read()
options = [one for one in sys.argv[1:] if one.startswith("--")]
words = [one for one in sys.argv[1:] if not one.startswith("--")]
with open("@CALLS@", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
named = dict(one.partition("=")[::2] for one in options)


def fail(*lines):
    print(*lines, sep="\\n", file=sys.stderr)
    raise SystemExit(1)


if named["--context"] not in state["contexts"]:
    fail(f'error: cannot locate context {{named["--context"]}}')
if words == ["config", "view"]:
    print(state["contexts"][named["--context"]], end="")
    raise SystemExit
if "--raw" in named:
    if "version" in state["refused"]:
        fail(*state["refused"]["version"])
    print('{{"gitVersion": "v1.36.3"}}')
    raise SystemExit
for line in state["warnings"].get(words[0], []):
    print(line, file=sys.stderr)
for what in (words[0], " ".join(words[:2])):
    if what in state["refused"]:
        fail(*state["refused"][what])
if words == ["apply"]:
    assert named["--dry-run"] == "server", options
    for one in json.loads(given)["items"]:
        print(f"{{one['kind'].lower()}}/{{one['metadata']['name']}} serverside-applied (server dry run)")
elif words[1:2] == ["secret"]:
    keys = state["secrets"].get(words[2])
    if keys is None:
        fail(f'Error from server (NotFound): secrets "{{words[2]}}" not found')
    print(*keys, sep="\\n")
elif words == ["get"]:
    named = [(one["kind"], one["metadata"]["name"]) for one in json.loads(given)["items"]]
    found = [one for one in state["objects"] if (one["kind"], one["metadata"]["name"]) in named]
    if len(found) == 1:
        print(json.dumps(found[0]))
    elif found:
        print(json.dumps({{"kind": "List", "items": found}}))
else:
    kinds = [one[:-1] for one in words[1].split(",")]
    print(json.dumps({{"kind": "List", "items": [one for one in state["rules"] if one["kind"].lower() in kinds]}}))
"""


class KubectlStandIn:
    """Stands for kubectl in a folder.

    Args:
        folder: of the program and its files.

    Attributes:
        folder: as given.
        contexts: by name, the URL of the server.
        secrets: by name, the keys.
        rules: the ResourceQuotas and LimitRanges of the namespace.
        objects: what is there already.
        refused: by `version`, `apply`, `get` or `get KIND`: what it prints, and ends with 1.
        warnings: by `apply` or `get`: what it prints beside its answer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contexts = {"dc2": SERVER}
        self.secrets: dict[str, list[str]] = {}
        self.rules: list[Mapping[str, Any]] = []
        self.objects: list[Mapping[str, Any]] = []
        self.refused: dict[str, list[str]] = {}
        self.warnings: dict[str, list[str]] = {}
        self._calls = folder / "calls"
        write_program(
            folder / "kubectl",
            _PROGRAM.replace("@STATE@", str(folder / "state")).replace("@CALLS@", str(self._calls)),
        )

    def environ(self) -> dict[str, str]:
        """Write what it answers with, and return the variables of a process that finds it."""
        kept = {
            name: getattr(self, name) for name in ("contexts", "secrets", "rules", "objects", "refused", "warnings")
        }
        (self.folder / "state").write_text(json.dumps(kept))
        return {**os.environ, "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}

    def calls(self) -> list[Sequence[str]]:
        """Return the arguments of each call."""
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []


def quota(hard: Mapping[str, str], used: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a ResourceQuota named `compute`."""
    status = {"hard": dict(hard), "used": dict(used or {})}
    return {
        "kind": "ResourceQuota",
        "metadata": {"name": "compute"},
        "spec": {"hard": dict(hard), **spec},
        "status": status,
    }


def limit_range(kind: str = "Container", **limits: Mapping[str, str]) -> dict[str, Any]:
    """Return a LimitRange with one rule."""
    return {"kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [{"type": kind, **limits}]}}
