"""A first topology file, written from a few answers: what `init` collects, as YAML with hints for the next steps.

It holds addresses and names alone; how clients authenticate is left as a comment, as secrets are references.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from reconciler.declare.documents.resources import schema_text
from reconciler.declare.loader import load
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.declared.first import InitAnswers
from reconciler.model.declared.topology import Topology

SCHEMA_FILE = "anabranch.schema.json"
"""Named by the first line of the file."""
_HEAD = """\
yaml-language-server: $schema=anabranch.schema.json
The line above lets editors complete and check this file; after an upgrade:
  anabranch schema > anabranch.schema.json
Validate, then look at what it would do:
  anabranch validate {file}
  anabranch plan {file}
"""
_SECURITY = (
    'security: {{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: mirror, password: "{password}", '
    'ca: "file:/etc/ssl/ca.pem"}}'
)


def write_first(path: Path, answers: InitAnswers) -> Topology:
    """Write a new file, and the schema for editors beside it where there is none; return what the file declares.

    Raises:
        DeclaredInputError: AB184 there is such a file already, AB180 it cannot be written, AB1xx the answers do not go
            together; nothing is left behind then.
    """
    if problems := wrong_in(answers):
        raise DeclaredInputError(problems)
    text = first_text(path.name, answers)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _there_already(path) from None
    except OSError as error:
        problem = Problem("AB180", str(path), f"cannot be written: {error.strerror}", "name another file")
        raise DeclaredInputError(problem) from None
    # One that is there stays, and without it there is still the file.
    with contextlib.suppress(OSError), path.with_name(SCHEMA_FILE).open("x", encoding="utf-8") as file:
        file.write(schema_text())
    return load((path,))


def check_absent(path: Path) -> None:
    """Make sure that there is no such file.

    Raises:
        DeclaredInputError: AB184, there is one.
    """
    if path.exists():
        raise _there_already(path)


def _there_already(path: Path) -> DeclaredInputError:
    return DeclaredInputError(Problem("AB184", str(path), "is there already", "name another file, or remove this one"))


def wrong_in(answers: InitAnswers) -> tuple[Problem, ...]:
    """Return what is wrong with answers, each named by its path: no file has lines of it yet."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "first.yaml"
        file.write_text(first_text(file.name, answers), encoding="utf-8")
        try:
            load((file,))
        except DeclaredInputError as error:
            return tuple(replace(one, where=_path_in(one.where)) for one in error.problems)
    return ()


def _path_in(where: str) -> str:
    """Return the path of `file:line:column (path)`."""
    return where.partition(" (")[2].removesuffix(")")


def first_text(file: str, answers: InitAnswers) -> str:
    """Return the text of a first file."""
    document = CommentedMap({"version": 1, "name": answers.name})
    document.yaml_set_start_comment(_HEAD.format(file=file))
    clusters = CommentedMap()
    for alias, addresses in answers.clusters.items():
        clusters[alias] = CommentedMap(bootstrap=_in_line(addresses))
        if answers.is_secured:
            clusters[alias]["security"] = _secured(alias)
    document["clusters"] = clusters
    topics = CommentedMap(include=_in_line(answers.topics))
    if answers.shape == "flow":
        source, target = answers.clusters
        document["flows"] = [CommentedMap({"from": source, "to": target, "topics": topics})]
    else:
        document["replication"] = [CommentedMap({answers.shape: _members(answers), "topics": topics})]
    if not answers.is_secured:
        alias = next(iter(clusters))
        hint = _SECURITY.format(password=_password(alias))
        clusters[alias].yaml_set_comment_before_after_key("bootstrap", before=hint, indent=4)
    written = io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 1000
    yaml.dump(document, written)
    return written.getvalue()


def _members(answers: InitAnswers) -> Any:
    first, *others = answers.clusters
    if answers.shape == "active-active":
        return _in_line([first, *others])
    if answers.shape == "fan-out":
        return CommentedMap({"from": first, "to": _in_line(others)})
    return CommentedMap({"from": _in_line(others), "to": first})


def _secured(alias: str) -> CommentedMap:
    found = CommentedMap(protocol="SASL_SSL", mechanism="SCRAM-SHA-512", username="mirror", password=_password(alias))
    found.fa.set_flow_style()
    return found


def _password(alias: str) -> str:
    """Return the reference to a password; the file never holds one."""
    return f"env:{alias.upper().replace('-', '_')}_PASSWORD"


def _in_line(items: Sequence[str]) -> CommentedSeq:
    found = CommentedSeq(items)
    found.fa.set_flow_style()
    return found
