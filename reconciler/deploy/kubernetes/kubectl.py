"""Requests to the API server of a Kubernetes cluster through `kubectl`, which has the user's ways of logging in.

Nothing is changed: objects are read, and manifests are applied by a dry run. Of a Secret it prints the keys alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, parse_json
from reconciler.model.base.text import json_text
from reconciler.model.connection import hosts

PROGRAM = "kubectl"
# One request; kubectl itself may make several, and run a program that logs in.
_REQUEST_SECONDS, _SECONDS = 15, 120
_KEYS = '{{range $key, $value := .data}}{{$key}}{{"\\n"}}{{end}}'
_CODE = "AB772"
_WARNING = "Warning: "
_MOST = 300
_PREFIX = re.compile(r'^(?:error|Error from server(?: \((?P<reason>\w+)\))?): (?:error when \w+ "[^"]*": )?')
# What its libraries log beside that.
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d")
_NO_RIGHT = re.compile(r'User "[^"]*" cannot ')


class Refusal(NamedTuple):
    """One thing that `kubectl` did not do.

    Attributes:
        text: why.
        reason: in one word, as the API server has it: `NotFound`, `Forbidden`; empty where it gives none.
    """

    text: str
    reason: str = ""

    @property
    def is_of_rights(self) -> bool:
        """Whether this user lacks a right to see or change, which is no fault of what was looked at."""
        return self.reason in ("Forbidden", "Unauthorized") and bool(_NO_RIGHT.search(self.text))


class KubectlOutput(NamedTuple):
    """What `kubectl` printed.

    Attributes:
        text: its output.
        refusals: what it did not do, in its words.
        warnings: of the API server.
    """

    text: str
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()


class Kubectl:
    """Requests about one namespace.

    Args:
        context: of kubectl's configuration.
        namespace: of all requests.
        where: of problems.
        environ: the variables of this process.
    """

    def __init__(self, context: str, namespace: str, where: str, environ: Mapping[str, str]) -> None:
        self._context, self._namespace, self._where = context, namespace, where
        self._environ = environ

    def check(self) -> None:
        """Make sure that kubectl is here and has the context, and that its server may be connected to, and answers.

        Raises:
            EnvironmentFault: AB772, it is not so; AB309, the server may not be connected to from here.
        """
        answer = self._run("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
        if answer.refusals:
            raise self._fault(answer.refusals[0].text, "correct kubernetes.context, or kubectl's configuration")
        server = answer.text.strip()
        hosts.check(f"context {self._context} of kubectl", (), [server])
        # Every user may ask for it.
        answer = self._run("get", "--raw=/version")
        if answer.refusals:
            message = f"{server} does not answer as an API server: {answer.refusals[0].text}"
            raise self._fault(message, "see that the cluster of kubernetes.context runs, and log in to it")

    def dry_run(self, objects: Sequence[Mapping[str, Any]]) -> KubectlOutput:
        """Return what an apply of objects that keeps nothing prints; errors are those of `check`."""
        options = (
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--field-manager=anabranch",
            "--filename=-",
        )
        return self._run("apply", *options, given=_as_list(objects))

    def existing(self, objects: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], KubectlOutput]:
        """Return those of some objects that are there, as they are; errors are those of `check`."""
        return self._items(
            self._run("get", "--ignore-not-found", "--output=json", "--filename=-", given=_as_list(objects))
        )

    def listed(self, kinds: str) -> tuple[list[dict[str, Any]], KubectlOutput]:
        """Return all objects of kinds, such as `resourcequotas,limitranges`; errors are those of `check`."""
        return self._items(self._run("get", kinds, "--output=json"))

    def keys_of(self, secret: str) -> tuple[frozenset[str], KubectlOutput]:
        """Return the keys of a Secret; errors are those of `check`."""
        answer = self._run("get", "secret", secret, f"--output=go-template={_KEYS}")
        return frozenset(answer.text.split()), answer

    def _items(self, answer: KubectlOutput) -> tuple[list[dict[str, Any]], KubectlOutput]:
        if not answer.text.strip():
            return [], answer
        try:
            found = parse_json(answer.text)
        except UnreadableFile:
            found = None
        items = found.get("items", [found]) if isinstance(found, dict) else None
        if not isinstance(items, list) or not all(isinstance(one, dict) and "kind" in one for one in items):
            message = f"{PROGRAM} printed no objects as JSON"
            raise self._fault(message, f"see that {PROGRAM} is kubectl")
        return items, answer

    def _run(self, *arguments: str, given: str = "") -> KubectlOutput:
        """Return what kubectl printed, run for the namespace in the context."""
        scope = (f"--context={self._context}", f"--namespace={self._namespace}")
        ended = self._ended([*scope, f"--request-timeout={_REQUEST_SECONDS}s", *arguments], given)
        printed = [line.strip()[:_MOST] for line in ended.stderr.decode(errors="replace").splitlines()]
        lines = [line for line in printed if line and not _LOGGED.match(line)]
        warnings = tuple(line.removeprefix(_WARNING) for line in lines if line.startswith(_WARNING))
        refusals: tuple[Refusal, ...] = ()
        if ended.returncode != 0:
            others = _refusals([line for line in lines if not line.startswith(_WARNING)])
            refusals = tuple(others) or (Refusal(f"{PROGRAM} ended with {ended.returncode}"),)
        return KubectlOutput(ended.stdout.decode(errors="replace"), refusals, warnings)

    def _ended(self, arguments: Sequence[str], given: str) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which(PROGRAM, path=self._environ.get("PATH"))
        if program is None:
            message = f"{PROGRAM} is not on the PATH"
            raise self._fault(message, f"install {PROGRAM}, or remove kubernetes.context")
        environ = dict(self._environ)
        try:
            return subprocess.run(
                [program, *arguments],
                input=given.encode(),
                capture_output=True,
                timeout=_SECONDS,
                env=environ,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = f"{PROGRAM} did not end within {_SECONDS} s"
            raise self._fault(message, "see what it waits for") from None
        except OSError as error:
            message = f"{program} cannot be started: {error.strerror}"
            raise self._fault(message, f"install {PROGRAM}") from None

    def _fault(self, message: str, remedy: str) -> EnvironmentFault:
        return EnvironmentFault(Problem(_CODE, self._where, message, remedy))


def _refusals(lines: Sequence[str]) -> list[Refusal]:
    """Return what lines refuse; one that begins no refusal goes on with that before it."""
    found: list[Refusal] = []
    for line in lines:
        if (match := _PREFIX.match(line)) is not None:
            found.append(Refusal(line[match.end() :], match["reason"] or ""))
        elif found:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}; {line}")
        else:
            found.append(Refusal(line))
    return found


def _as_list(objects: Sequence[Mapping[str, Any]]) -> str:
    return json_text({"apiVersion": "v1", "kind": "List", "items": list(objects)})
