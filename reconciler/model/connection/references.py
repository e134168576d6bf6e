"""References: where a value is kept that differs between environments or is a secret, and how it is looked up there.

`declare` makes them from files. A value is looked up where it is needed: no specification, plan or digest has
more of it than the reference. Values of secrets are in no message; those of addresses and names are, once they have the
form of one.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from reconciler.model.base import properties
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_text

# More than line breaks and marks before what a file holds.
_BEGIN = 1024
_LONGEST = 2**20
_REFERENCE = re.compile(r"env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>/[^\s#]+)(#(?P<key>[^\s#]+))?")
EXPECTED = "env:NAME, file:/absolute/path or file:/absolute/path#key"
"""The forms of a reference, as messages show them."""


@dataclass(frozen=True)
class Reference:
    """A place where one value is kept: an environment variable, a file, or a properties file's key.

    Attributes:
        scheme: `env` or `file`.
        name: the variable's name, or the file's absolute path.
        key: of a properties file; empty where the whole file is the value.
        place: `file:line:column (json path)` where it is declared, no part of what it is; empty of one that was
            made otherwise.
    """

    scheme: Literal["env", "file"]
    name: str
    key: str = ""
    place: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, place: str = "") -> Reference:
        """Read `env:NAME`, `file:/absolute/path` or `file:/absolute/path#key`.

        Raises:
            ValueError: the text is none of them; it is not repeated in the message, as it may be a secret.
        """
        found = _REFERENCE.fullmatch(text)
        if found is None:
            message = f"not a reference: expected {EXPECTED}"
            raise ValueError(message)
        if found["env"]:
            return cls("env", found["env"], place=place)
        return cls("file", found["file"], found["key"] or "", place)

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}{'#' if self.key else ''}{self.key}"

    @property
    def path(self) -> str | None:
        """The file that is the value as a whole, for clients that read it by themselves; None otherwise."""
        return self.name if self.scheme == "file" and not self.key else None

    @property
    def shown(self) -> str:
        """How messages name where the value is: the path of a whole file, otherwise the reference."""
        return self.path or str(self)

    def resolve(self, where: str) -> str:
        """Return the value; of a whole file without the line breaks at its end.

        Args:
            where: whose it is, for the error of a reference that has no place of its own.

        Raises:
            EnvironmentFault: AB304, the variable is unset, the file cannot be read or has no such key, or what is there
                is empty.
        """
        if self.scheme == "env":
            value = os.environ.get(self.name)
            if value:
                return value
            # An empty one is that of a secret that CI does not have; what follows would raise a misleading error.
            found = "is not set" if value is None else "is empty"
            raise self._fault(where, f"environment variable {self.name} {found}", f"set {self.name}")
        try:
            # Editors of Windows put a mark before text, which is no part of the value.
            text = read_text(Path(self.name), _LONGEST).replace("\r\n", "\n")
        except OSError as error:
            raise self._unreadable(where, error.strerror) from None
        except UnreadableFile as error:
            raise self._unreadable(where, f"it {error}") from None
        if self.key:
            return self._of_key(where, text)
        if not (value := text.rstrip("\r\n")):
            raise self._empty(where)
        return value

    def _of_key(self, where: str, text: str) -> str:
        value = properties.value(text, self.key)
        if value is None:
            message = f"{self.name} has no key {self.key}"
            raise self._fault(where, message, "write it there, as KEY=VALUE in a line of its own, or correct the key")
        if not value:
            raise self._fault(where, f"key {self.key} of {self.name} is empty", "write its value there")
        return value

    def check(self, where: str) -> None:
        """Make sure that there is something; a whole file may hold anything but nothing.

        Raises:
            EnvironmentFault: AB304, as of `resolve`.
        """
        if self.path is None:
            self.resolve(where)
            return
        try:
            with Path(self.name).open("rb") as file:
                begin = file.read(_BEGIN)
        except OSError as error:
            raise self._unreadable(where, error.strerror) from None
        if not begin.removeprefix(codecs.BOM_UTF8).strip(b"\r\n"):
            raise self._empty(where)

    def misfit(self, where: str, expected: str) -> EnvironmentFault:
        """Return the error that what is there is something else; it is not shown, as it may be a secret.

        Args:
            where: as above.
            expected: what the field takes.
        """
        message = f"expected {expected}; {self} holds something else, which is not shown: it may be a secret"
        return self._fault(where, message, "correct what it holds, or the reference")

    def _empty(self, where: str) -> EnvironmentFault:
        return self._fault(where, f"{self.name} is empty", "write there what it is to hold, or correct the path")

    def _unreadable(self, where: str, reason: str | None) -> EnvironmentFault:
        return self._fault(where, f"cannot read {self.name}: {reason}", "create it or correct the path")

    def _fault(self, where: str, message: str, remedy: str) -> EnvironmentFault:
        return EnvironmentFault(Problem("AB304", self.place or where, message, remedy))


Text: TypeAlias = str | Reference
"""What a field holds that takes a value or a reference to one."""


@dataclass(frozen=True)
class ReferenceForm:
    """What a field takes whose value is neither a secret nor any text.

    Attributes:
        expected: as messages show it.
        pattern: a regular expression that matches the whole value.
    """

    expected: str
    pattern: str


ADDRESSES = ReferenceForm(
    "host:port of brokers, with commas between them",
    r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}( *, *(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})* *,? *",
)
CLUSTER_ID = ReferenceForm("a cluster's id", r"[A-Za-z0-9_-]+")
URL = ReferenceForm("an http or https URL", r"https?://[^\s@]+")
PRINCIPAL = ReferenceForm("a Kerberos principal", r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)?(@[A-Za-z0-9._-]+)?")
KAFKA_PRINCIPAL = ReferenceForm("a principal, such as User:mirror", r"[A-Za-z]+:(?!\*$)\S(.*\S)?")
MASTERS = ReferenceForm("spark://host:port", r"spark://[A-Za-z0-9._-]+:[0-9]{1,5}(,[A-Za-z0-9._-]+:[0-9]{1,5})*")


def settled(value: Text, where: str, form: ReferenceForm | None = None) -> str:
    """Return a value, looked up where it is a reference.

    Args:
        value: what is declared.
        where: whose it is, for the error.
        form: what it must be; None for any text.

    Raises:
        EnvironmentFault: AB304, it cannot be looked up, or is something else.
    """
    if not isinstance(value, Reference):
        return value
    found = value.resolve(where).strip()
    if not found or (form is not None and re.fullmatch(form.pattern, found) is None):
        raise value.misfit(where, form.expected if form is not None else "more than blanks")
    return found


def said(value: Text, form: ReferenceForm | None = None) -> str:
    """Return how a message shows a value that is no secret; a reference that leads to none as it is declared."""
    try:
        return settled(value, "", form)
    except EnvironmentFault:
        return str(value)


def read(value: Any) -> Any:
    """Return a value of a field again of which `dataclasses.asdict` made JSON types."""
    return Reference(**value) if isinstance(value, dict) and "scheme" in value else value


def portable(value: Any) -> Any:
    """Return JSON types of `dataclasses.asdict` for a digest: references without where they are declared."""
    if isinstance(value, dict):
        left_out = {"place", *(() if value.get("key") else ("key",))} if "scheme" in value else set()
        return {name: portable(one) for name, one in value.items() if name not in left_out}
    return [portable(one) for one in value] if isinstance(value, list | tuple) else value
