"""The ACLs that flows need, for people, as commands of Kafka's own tool, and as JSON types.

`anabranch explain --acls` calls it. Pure: no cluster is asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.model.acls.requirements import PURPOSES, Acl, Purpose, ResourceKind, ResourcePattern
from reconciler.model.base.text import LONGEST, shown
from reconciler.model.declared.topology import Topology
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line, Lines

_TITLES: Mapping[Purpose, str] = {
    "replicate": "to replicate",
    "apply": "to apply",
    "verify": "to verify",
}
_OPTIONAL = ", optional"
_ADMINISTRATOR = "admin.properties"
_LEGEND = (
    "To replicate: `replicate --no-reconcile`, `status`, `lag`, `pause`, `resume`, `restart`. "
    "To apply: `plan` and `apply`. `replicate` with its reconcile loop needs both. "
    "To verify: `verify`, which only reads."
)


@dataclass(frozen=True)
class Granted:
    """What one principal needs on one cluster.

    Attributes:
        alias: the cluster.
        bootstrap: its brokers, `host:port`.
        principal: as Kafka writes it: `User:mirror`.
        acls: what is needed there.
        remarks: what ACLs cannot express, and other notes.
    """

    alias: str
    bootstrap: tuple[str, ...]
    principal: str
    acls: tuple[Acl, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    """The operations on one resource, for one purpose."""

    kind: ResourceKind
    pattern: ResourcePattern
    operations: tuple[str, ...]
    whys: tuple[str, ...]


def granted(
    topology: Topology, acls: Collection[Acl], principals: Mapping[str, str], remarks: Mapping[str, Sequence[str]]
) -> list[Granted]:
    """Return ACLs by cluster, in the order of declaration.

    Args:
        topology: the declaration.
        acls: some.
        principals: the principal of each cluster, by alias.
        remarks: by alias.
    """
    return [
        Granted(
            alias,
            topology.clusters[alias].declared_addresses,
            principals[alias],
            tuple(acl for acl in acls if acl.alias == alias),
            tuple(remarks.get(alias, ())),
        )
        for alias in topology.aliases
        if any(acl.alias == alias for acl in acls)
    ]


def acls_json(told: Sequence[Granted]) -> list[dict[str, Any]]:
    """Return the ACLs as JSON types: one object for each cluster, with one for each operation."""
    return [
        {
            "cluster": one.alias,
            "bootstrap": list(one.bootstrap),
            "principal": one.principal,
            "acls": [
                {
                    "purpose": acl.purpose,
                    "optional": acl.is_optional,
                    "resource": acl.kind,
                    "name": acl.pattern.name,
                    "pattern": "prefixed" if acl.pattern.prefixed else "literal",
                    "operation": acl.operation,
                    "why": acl.why,
                    "flows": list(acl.flows),
                }
                for acl in one.acls
            ],
            "remarks": list(one.remarks),
        }
        for one in told
    ]


def acls_text(told: Sequence[Granted]) -> Lines:
    """Return the ACLs for people."""
    lines: list[Line] = []
    for one in told:
        lines.append(Line.assemble((f"cluster {one.alias}", "bold"), f"   {one.principal}"))
        for title, rows in _sections(one):
            lines.append(Line(f"  {title}", style="cyan"))
            cells = [(row.kind, str(row.pattern), ", ".join(row.operations), "; ".join(row.whys)) for row in rows]
            lines += aligned(("resource", "name", "operations", "for"), cells, indent=4)
        lines += [Line(f"  {remark}", style="dim") for remark in one.remarks]
    return Lines([*lines, Line(_LEGEND, style="dim")])


def acls_commands(told: Sequence[Granted]) -> str:
    """Return a shell script of `kafka-acls.sh` commands; what is optional is commented out."""
    lines = [f"# {_ADMINISTRATOR} holds the settings with which an administrator connects.", f"# {_LEGEND}"]
    for one in told:
        lines += ["", f"# cluster {shown(one.alias)}", *(f"# {shown(remark)}" for remark in one.remarks)]
        for title, rows in _sections(one):
            lines.append(f"# {title}")
            optional = "# " if title.endswith(_OPTIONAL) else ""
            lines += [optional + " ".join(map(_word, _command(one, row))) for row in rows]
    return "\n".join(lines) + "\n"


def _command(one: Granted, row: _Row) -> list[str]:
    command = ["kafka-acls.sh", "--bootstrap-server", ",".join(one.bootstrap), "--command-config", _ADMINISTRATOR]
    command += ["--add", "--allow-principal", one.principal]
    for operation in row.operations:
        command += ["--operation", "".join(word.capitalize() for word in operation.split("_"))]
    if row.kind == "cluster":
        return [*command, "--cluster"]
    command += [f"--{row.kind}", row.pattern.name]
    return [*command, "--resource-pattern-type", "prefixed"] if row.pattern.prefixed else command


def _word(word: str) -> str:
    r"""Return a word of a command; what is not printable as Bash and Zsh escape it: `$'a\U0000001bb'`."""
    if shown(word, max(len(word), LONGEST)) == word:
        return shlex.quote(word)
    kept = (char.isascii() and char.isprintable() and char not in "\\'" for char in word)
    return "$'" + "".join(c if keep else f"\\U{ord(c):08x}" for c, keep in zip(word, kept, strict=True)) + "'"


def _sections(one: Granted) -> Iterator[tuple[str, list[_Row]]]:
    """Yield titles and what stands under them: for each purpose what is needed, then what is optional."""
    for purpose in PURPOSES:
        for is_optional in (False, True):
            acls = [acl for acl in one.acls if (acl.purpose, acl.is_optional) == (purpose, is_optional)]
            if acls:
                yield f"{_TITLES[purpose]}{_OPTIONAL if is_optional else ''}", _rows(acls)


def _rows(acls: Sequence[Acl]) -> list[_Row]:
    by_resource: dict[tuple[ResourceKind, ResourcePattern], list[Acl]] = {}
    for acl in acls:
        by_resource.setdefault((acl.kind, acl.pattern), []).append(acl)
    return [
        _Row(kind, pattern, tuple(acl.operation for acl in some), tuple(dict.fromkeys(acl.why for acl in some)))
        for (kind, pattern), some in by_resource.items()
    ]
