"""A first topology file, written from a few answers: what `init` asks, as YAML that says where to go on.

It holds addresses and names alone; how clients authenticate is left as a comment, as secrets are references.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from reconciler.declare.loader import load
from reconciler.model.errors import DeclaredInputError, Problem
from reconciler.model.first import Answers
from reconciler.model.topology import Topology

_HEAD = """\
Validate, then look at what it would do:
  anabranch validate {file}
  anabranch plan {file}
"""
_SECURITY = (
    'security: {{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: mirror, password: "env:{variable}_PASSWORD", '
    'ca: "file:/etc/ssl/ca.pem"}}'
)


def write_first(path: Path, answers: Answers) -> Topology:
    """Write a new file, and return what it declares.

    Raises:
        DeclaredInputError: AB184 there is such a file already, AB180 it cannot be written, AB1xx the answers do not go
            together; nothing is left behind then.
    """
    text = first_text(path.name, answers)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        problem = Problem("AB184", str(path), "is there already", "name another file, or remove this one")
        raise DeclaredInputError(problem) from None
    except OSError as error:
        problem = Problem("AB180", str(path), f"cannot be written: {error.strerror}", "name another file")
        raise DeclaredInputError(problem) from None
    try:
        return load((path,))
    except DeclaredInputError:
        path.unlink()
        raise


def first_text(file: str, answers: Answers) -> str:
    """Return the text of a first file."""
    document = CommentedMap({"version": 1, "name": answers.name})
    document.yaml_set_start_comment(_HEAD.format(file=file))
    clusters = CommentedMap()
    for alias, addresses in answers.clusters.items():
        clusters[alias] = CommentedMap(bootstrap=_in_line(addresses))
    document["clusters"] = clusters
    topics = CommentedMap(include=_in_line(answers.topics))
    if answers.shape == "flow":
        source, target = answers.clusters
        document["flows"] = [CommentedMap({"from": source, "to": target, "topics": topics})]
    else:
        document["replication"] = [CommentedMap({answers.shape: _members(answers), "topics": topics})]
    alias = next(iter(clusters))
    hint = _SECURITY.format(variable=alias.upper().replace("-", "_"))
    clusters[alias].yaml_set_comment_before_after_key("bootstrap", before=hint, indent=4)
    written = io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 1000
    yaml.dump(document, written)
    return written.getvalue()


def _members(answers: Answers) -> Any:
    first, *others = answers.clusters
    if answers.shape == "active-active":
        return _in_line([first, *others])
    if answers.shape == "fan-out":
        return CommentedMap({"from": first, "to": _in_line(others)})
    return CommentedMap({"from": _in_line(others), "to": first})


def _in_line(items: Sequence[str]) -> CommentedSeq:
    found = CommentedSeq(items)
    found.fa.set_flow_style()
    return found
