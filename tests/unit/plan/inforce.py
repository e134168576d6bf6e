"""Targets where a declaration is in force, for the tests of what changes against it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.declaration import DeclarationHistory, InForce, declaration_into
from reconciler.report.plan.to_text import plan_text
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, plan_of, topic

ORDERS, PAYMENTS = topic("orders"), topic("payments")
SOURCE = cluster(EAST, ORDERS, PAYMENTS)


def in_force(declared: Topology, target: ObservedCluster, recorded: bool = True) -> ObservedCluster:
    """Return a target where a declaration is in force."""
    one = declaration_into(declared, target.alias)
    entry = InForce(one.digest, 1_800_000_000.0, "ops@host")
    return replace(target, in_force=entry, declaration=one if recorded else None)


def applied(declared: Topology, recorded: bool = True, held: int = 0) -> ObservedCluster:
    """Return the target after an apply of a declaration, with so many records in each copy."""
    before = cluster(WEST, internal=False)
    after = carried_out(plan_of(declared, SOURCE, before), before)
    filled = {n: replace(t, starts=(0,) * t.partitions, ends=(held,) * t.partitions) for n, t in after.topics.items()}
    return in_force(declared, replace(after, topics=filled), recorded)


def text(plan: Plan) -> list[str]:
    file = io.StringIO()
    Console(file=file, soft_wrap=True, highlight=False).print(plan_text(plan))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def history(declared: Topology, entry: Sequence[InForce] = ()) -> DeclarationHistory:
    one = declaration_into(declared, WEST)
    return DeclarationHistory((*entry, InForce(one.digest, 1.0, "ops")), one)
