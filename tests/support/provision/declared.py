"""What a Pulumi program declares, resource by resource, under the mocks of Pulumi's own library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, rpc

SECRET = "1b47061264138c4ac30d75fd1eb44270"
"""The signature by which Pulumi's protocol marks a secret value."""


@dataclass(frozen=True)
class Declared:
    """One resource as the program declared it."""

    urn: str
    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    provider: str
    protect: bool
    import_id: str
    raw: dict[str, Any] = field(repr=False)


class Monitor(mocks.MockMonitor):
    """Keeps the whole request of every resource; the mocks of Pulumi hand over inputs only."""

    def __init__(self) -> None:
        super().__init__(Echo())
        self.declared: dict[str, Declared] = {}

    def RegisterResource(self, request: Any) -> Any:  # the name is Pulumi's
        register: Any = super().RegisterResource
        answer = register(request)
        raw: dict[str, Any] = rpc.deserialize_properties(request.object)
        self.declared[answer.urn] = Declared(
            answer.urn,
            request.type,
            request.name,
            {key: unwrapped(value) for key, value in raw.items()},
            request.parent,
            request.provider,
            request.protect,
            request.importId,
            raw,
        )
        return answer


class Echo(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        return f"id-of-{args.name}", args.inputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        return {}, None


def unwrapped(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) and SECRET in value.values() else value


def declared_by(start: Callable[[], object], stack: str, config: Mapping[str, str]) -> list[Declared]:
    """Run a program; return what it declared, and the stack itself, by name."""
    # Pulumi takes the loop of the thread, and `asyncio.run` leaves none behind.
    asyncio.set_event_loop(asyncio.new_event_loop())
    monitor = Monitor()
    mocks.set_mocks(Echo(), project="anabranch", stack=stack, monitor=monitor)
    pulumi.runtime.set_all_config(dict(config))
    # Waits until every resource is registered; Pulumi has no types for it.
    within_pulumi: Any = pulumi.runtime.test
    within_pulumi(start)()
    # Resources are registered side by side, in no order.
    return sorted(monitor.declared.values(), key=lambda one: one.name)
