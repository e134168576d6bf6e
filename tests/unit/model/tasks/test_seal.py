"""The seal of a run: what bears it comes from whoever has the key, under its own key, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.task.commands import misfit

SEAL = Seal("shop", "run", "east-west", new_key())
VALUE = {"command": "shares", "time": 1.5, "shares": {"tasks": 1, "topics": {"orders": ["east.orders", [0]]}}}
EAST, WEST = (Cluster(alias, ("127.0.0.1:9",)) for alias in ("east", "west"))
FLOW = Flow("east-west", "east", "west", Selection(("orders.*",), ("orders-secret",)))
SPEC = FlowSpec("shop", "run", FLOW, EAST, WEST, ("east", "west"))

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(st.text(), json_values, max_size=5)


@given(st.text(), messages)
def test_what_was_sealed_bears_the_seal(key: str, value: dict[str, Any]) -> None:
    sealed = SEAL.sealed(key, value)
    number = SEAL.serial(key, sealed)
    assert number is not None
    assert number == sealed["serial"]


@given(st.text(), messages, st.text(), messages)
def test_nothing_else_bears_it(key: str, value: dict[str, Any], other: str, extra: dict[str, Any]) -> None:
    sealed = SEAL.sealed(key, value)
    assert SEAL.serial(other, sealed) is None or other == key
    assert SEAL.serial(key, value) is None or "mac" in value
    changed = {**sealed, **extra}
    assert SEAL.serial(key, changed) is None or changed == sealed
    assert replace(SEAL, key=new_key()).serial(key, sealed) is None
    assert replace(SEAL, key="").serial(key, sealed) is None


@pytest.mark.parametrize(
    "change",
    [
        {"mac": "\udc80"},
        {"mac": None},
        {"mac": ["a"]},
        {"serial": True},
        {"serial": "1"},
        {"serial": 10**5000},
        {"shares": {"tasks": 2}},
    ],
)
def test_a_change_of_any_part_is_noticed(change: dict[str, Any]) -> None:
    assert SEAL.serial("k", {**SEAL.sealed("k", VALUE), **change}) is None


def test_numbers_grow() -> None:
    found = [SEAL.serial("k", SEAL.sealed("k", VALUE)) or 0 for _ in range(100)]
    assert found == sorted(found)


def test_nothing_can_be_sealed_without_a_key() -> None:
    with pytest.raises(ValueError, match="run has no key"):
        Seal("shop", "run", "east-west", "").sealed("k", VALUE)


def test_a_key_is_never_shown_and_no_part_of_the_text() -> None:
    assert len({new_key() for _ in range(100)}) == 100
    assert len(bytes.fromhex(SPEC.key)) == 32
    for shown in (SPEC.to_json(), repr(SPEC), str(SPEC), repr(SPEC.seal)):
        assert SPEC.key not in shown
    assert FlowSpec.from_json(SPEC.to_json(), SPEC.key).seal == SPEC.seal
    assert FlowSpec.from_json(SPEC.to_json()).seal.serial("k", SPEC.seal.sealed("k", VALUE)) is None


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (Place("orders-secret", 0, "east.orders-secret"), "does not take topic orders-secret"),
        (Place("users", 0, "east.users"), "does not take topic users"),
        (Place("west.orders", 0, "east.west.orders"), "does not take topic west.orders"),
        (Place("anabranch-owned.internal", 0, "east.anabranch-owned.internal"), "does not take"),
        (Place("orders", 0, "loot"), "its copy by flow east-west is east.orders"),
        (Place("orders", 0, "orders"), "its copy by flow east-west is east.orders"),
        (Place("orders", 0, "east.orders", "upside-down"), "declares offsets: auto"),
        (Place("orders", -1, "east.orders"), "counted from 0"),
        (Place("orders" + "x" * 250, 0, "east.orders" + "x" * 250), "has no name for its copy"),
    ],
)
def test_a_place_that_the_flow_does_not_declare_is_a_misfit(place: Place, why: str) -> None:
    assert why in (misfit(SPEC, place) or "")


@pytest.mark.parametrize("declared", ["identical", "translated"])
def test_a_mode_is_the_one_that_the_flow_declares(declared: Literal["identical", "translated"]) -> None:
    spec = replace(SPEC, flow=replace(FLOW, offsets=declared))
    for mode in ("identical", "translated"):
        place = Place("orders", 0, "east.orders", mode)
        assert misfit(SPEC, place) is None
        assert (misfit(spec, place) is None) == (mode == declared)
