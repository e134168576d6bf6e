"""Whatever a file holds, loading it gives a topology or problems with places, never another error."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import declare
from reconciler.declare.documents.resources import schema_text
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.declared.topology import Topology

pytestmark = pytest.mark.slow

FOLDER_IS_SHARED = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

VALID = {
    "version": 1,
    "name": "shop",
    "clusters": {
        "a": {"bootstrap": ["b1:9092"], "datacenter": "dc1"},
        "b": {
            "bootstrap": "b2:9092",
            "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u", "password": "env:P"},
        },
        "c": {"bootstrap": ["b3:9092"]},
    },
    "policy": {"type": "default", "separator": "."},
    "defaults": {"tasks": 2, "topics": {"exclude": ["x.*"]}},
    "replication": [
        {"active-active": ["a", "b"], "topics": {"include": ["orders.*", "users"]}},
        {"fan-out": {"from": "c", "to": ["a", "b"]}, "offsets": "identical"},
    ],
    "flows": [{"from": "a", "to": "b", "enabled": False}, {"from": "b", "to": "c", "name": "x", "tasks": 3}],
}


def keys_of(schema: object) -> set[str]:
    if isinstance(schema, dict):
        return set(schema.get("properties", {})).union(*map(keys_of, schema.values()))
    return set().union(*map(keys_of, schema)) if isinstance(schema, list) else set()


WORDS = st.sampled_from([*sorted(keys_of(json.loads(schema_text()))), "a", "b", "c", "quota", "", "orders(", "é", "1"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=8))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)


def accepted(path: Path, data: bytes) -> bool:
    """Load one file; anything but a topology or declared-input problems fails the test."""
    path.write_bytes(data)
    try:
        topology = declare.load([path])
    except DeclaredInputError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.where.startswith(str(path))
            assert problem.code.startswith("AB1")
            assert problem.message
            assert problem.remedy
        return False
    assert isinstance(topology, Topology)
    assert len({flow.name for flow in topology.flows}) == len(topology.flows)
    return True


@FOLDER_IS_SHARED
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    assert not accepted(tmp_path / "any.yaml", data)


@FOLDER_IS_SHARED
@given(data=st.text(st.sampled_from("ab:-[]{},&*!|>'\"#%@? \n\t\\"), max_size=60))
def test_any_punctuation(tmp_path: Path, data: str) -> None:
    assert not accepted(tmp_path / "punctuation.yaml", data.encode())


@FOLDER_IS_SHARED
@given(value=st.dictionaries(WORDS, VALUES, max_size=6))
def test_any_mapping_of_words_that_topologies_use(tmp_path: Path, value: dict[str, object]) -> None:
    document = {"version": 1, "name": "shop", "clusters": {"a": {"bootstrap": "b:1"}}} | value
    path = tmp_path / "words.yaml"
    if accepted(path, json.dumps(document).encode()):
        assert set(document) <= {*VALID}


@FOLDER_IS_SHARED
@given(data=st.data())
def test_a_valid_topology_with_one_value_changed(tmp_path: Path, data: st.DataObject) -> None:
    document: object = copy.deepcopy(VALID)
    at: object = document
    while True:
        steps = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        step = data.draw(st.sampled_from(steps))
        assert isinstance(at, dict | list)
        inner = at[step]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            at[step] = data.draw(VALUES)
            break
        at = inner
    accepted(tmp_path / "changed.yaml", json.dumps(document).encode())


def test_the_topology_that_the_others_change_is_valid(tmp_path: Path) -> None:
    assert accepted(tmp_path / "valid.yaml", json.dumps(VALID).encode())
