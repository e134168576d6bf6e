"""The errors of the whole house, as one tree.

All rooms raise these; only `cli` turns them into exit codes. This module does not depend on how they are printed.

    AnabranchError
    ├── DeclaredInputError   exit 1  what the user wrote is wrong
    ├── EnvironmentFault     exit 1  a cluster, a tool or the machine does not do what is needed
    │   └── Unreachable      exit 6  a cluster did not answer: the answer is incomplete
    ├── Refused              exit 4  a guardrail stands in the way
    └── Locked               exit 5  another run holds the lock

Codes are stable: AB1xx declared input, AB2xx data plane, AB3xx environment, AB4xx guardrails, AB5xx locks, AB6xx what
`verify` finds, and offsets of consumers, AB7xx failover and failback.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.base.text import shown

_CODED = re.compile(r" \[AB\d{3}\]$")


def is_coded(text: str) -> bool:
    """Return whether a text ends with an error code, behind which no second one is shown."""
    return _CODED.search(text) is not None


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what was expected and found, and what to do; as text it is one line.

    Attributes:
        code: stable code such as `AB104`.
        where: `file:line (json path)`, or cluster, topic, partition and offset.
        message: what was expected and what was found.
        remedy: what to do about it.
    """

    code: str
    where: str
    message: str
    remedy: str

    def __str__(self) -> str:
        head = f"{shown(self.where)}: " if self.where else ""
        tail = f" — {shown(self.remedy)}" if self.remedy else ""
        return f"{head}{shown(self.message)}{tail}{self.tag}"

    @property
    def tag(self) -> str:
        """The code as it stands behind the message; empty where the message ends with the code of what it is about."""
        return "" if not self.remedy and is_coded(self.message) else f" [{self.code}]"


class AnabranchError(Exception):
    """Root of every error that Anabranch raises on purpose.

    Args:
        problems: one or more.
        log: what stands below them when they are printed, line by line: the end of a log that explains more.

    Attributes:
        problems: all that was found, never empty.
        log: these lines.
        exit_code: what a command ends with when the error is not handled.
    """

    exit_code = 1

    def __init__(self, problems: Problem | Sequence[Problem], log: Sequence[str] = ()) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.log = tuple(log)
        super().__init__("\n".join([*map(str, self.problems), *map(shown, self.log)]))


class DeclaredInputError(AnabranchError):
    """What the user declared cannot be accepted; carries every problem found at once."""


class EnvironmentFault(AnabranchError):
    """A cluster, a tool or the machine does not do what is needed."""


class Unreachable(EnvironmentFault):
    """A cluster did not answer, so the answer is incomplete and must not be called clean."""

    exit_code = 6


class Refused(AnabranchError):
    """A guardrail refuses; the remedy names the flag or field that allows it."""

    exit_code = 4


class Locked(AnabranchError):
    """Another run holds the lock."""

    exit_code = 5


def together(errors: Sequence[AnabranchError]) -> AnabranchError:
    """Return one error with the problems of several, each once; of their kind if they are all of one, else the root.

    Args:
        errors: one or more.
    """
    problems = list(dict.fromkeys(problem for error in errors for problem in error.problems))
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else AnabranchError
    return kind(problems, [line for error in errors for line in error.log])
