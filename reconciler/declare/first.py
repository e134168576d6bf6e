"""A first topology file, written from a few answers: what `init` asks, as YAML that says where to go on.

It holds addresses and names alone; how clients authenticate is left as a comment, as secrets are references.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from reconciler.declare.loader import load
from reconciler.model.errors import DeclaredInputError, Problem
from reconciler.model.topology import Topology

Shape = Literal["flow", "fan-out", "aggregation", "active-active"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
_ENDS = 2

_HEAD = """\
Validate, then look at what it would do:
  anabranch validate {file}
  anabranch plan {file}
"""
_SECURITY = (
    'security: {{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: mirror, password: "env:{variable}_PASSWORD", '
    'ca: "file:/etc/ssl/ca.pem"}}\n'
)


@dataclass(frozen=True)
class Answers:
    """What a first file is made of.

    Attributes:
        name: of the topology.
        clusters: addresses by alias, in the order in which they were told; the first is the source of a `flow` or
            `fan-out`, and the target of an `aggregation`.
        shape: what the clusters form.
        topics: names and regular expressions of the topics to copy.
    """

    name: str
    clusters: Mapping[str, Sequence[str]]
    shape: Shape
    topics: Sequence[str]


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
        document["flows"] = [CommentedMap(**_ends(answers), topics=topics)]
    else:
        document["replication"] = [CommentedMap({answers.shape: _members(answers), "topics": topics})]
    for number, alias in enumerate(clusters):
        if not number:
            hint = _SECURITY.format(variable=alias.upper().replace("-", "_"))
            clusters[alias].yaml_set_comment_before_after_key("bootstrap", before=hint.rstrip(), indent=4)
    written = io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 1000
    yaml.dump(document, written)
    return written.getvalue()


def _ends(answers: Answers) -> dict[str, str]:
    source, target = (*answers.clusters, "", "")[:_ENDS]
    return {"from": source, "to": target}


def _members(answers: Answers) -> Any:
    first, *others = answers.clusters
    if answers.shape == "active-active":
        return _in_line([first, *others])
    ends = (
        {"from": first, "to": _in_line(others)}
        if answers.shape == "fan-out"
        else {"from": _in_line(others), "to": first}
    )
    return CommentedMap(ends)


def _in_line(items: Sequence[str]) -> CommentedSeq:
    found = CommentedSeq(items)
    found.fa.set_flow_style()
    return found
