"""Flow specifications: JSON and back without a loss, and never a secret's value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import MECHANISMS, PROTOCOLS, OAuth, Security
from reconciler.model.declared.clients import AdminSettings, Clients, ConsumerSettings, ProducerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import DELIVERIES, FILLS, OFFSETS_MODES, ON_DATA_LOSS, ON_RECREATE, Flow
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.policies.types import OTHERWISE, POLICY_KINDS
from reconciler.model.tasks.spec import DEFAULT_ROUND, FlowSpec

names = st.text(min_size=1, max_size=12)
items = st.lists(names, max_size=3).map(tuple)
secrets = st.builds(Reference, st.just("env"), st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)) | st.builds(
    Reference, st.just("file"), st.from_regex(r"/[a-z./-]{1,12}", fullmatch=True)
)
securities = st.builds(
    Security,
    st.sampled_from(PROTOCOLS),
    st.none() | st.sampled_from(MECHANISMS),
    st.none() | names,
    *[st.none() | secrets] * 5,
    st.none() | st.builds(OAuth, st.none() | secrets, st.none() | names, st.none() | names, st.none() | secrets, names),
)
numbers = st.integers(1, 2**31)
clients = st.builds(
    Clients,
    st.builds(ConsumerSettings, st.none() | names, numbers, st.none() | numbers, fetch_max_bytes=numbers),
    st.builds(ProducerSettings, st.none() | names, numbers, max_request_size=st.none() | numbers),
    st.builds(AdminSettings, st.none() | names, st.none() | numbers),
    st.lists(st.tuples(names, names), max_size=2).map(tuple),
)
clusters = st.builds(
    Cluster, names, st.lists(names, min_size=1, max_size=3).map(tuple), names, securities, clients=clients
)
flows = st.builds(
    Flow,
    names,
    names,
    names,
    st.builds(Selection, items, items, st.booleans()),
    st.builds(
        ReplicationPolicy,
        st.sampled_from(POLICY_KINDS),
        st.sampled_from([".", "-", ""]),
        st.lists(st.builds(RenameRule, names, names, names), max_size=2).map(tuple),
        st.sampled_from(OTHERWISE),
        names,
        st.lists(st.tuples(names, names), max_size=2).map(tuple),
        names,
    ),
    st.sampled_from(OFFSETS_MODES),
    st.sampled_from(DELIVERIES),
    st.builds(
        Start,
        st.sampled_from(["earliest", "latest", "timestamp", "offsets"]),
        st.integers(0, 2**42),
        st.lists(st.tuples(names, st.lists(st.integers(0, 2**62), max_size=3).map(tuple)), max_size=3).map(tuple),
    ),
    st.sampled_from(FILLS),
    st.sampled_from(ON_DATA_LOSS),
    st.sampled_from(ON_RECREATE),
    st.none() | st.integers(1, 2**40),
    st.integers(0, 2**30),
    st.integers(1, 64),
    st.none() | st.integers(1, 5),
    st.floats(1.0, 1e6),
    st.booleans(),
    names,
    limits=st.builds(Limits, numbers, numbers, st.integers(0, 2**31)),
)
specs = st.builds(FlowSpec, names, names, flows, clusters, clusters, items, st.floats(0.1, 1e6))


@given(specs)
def test_json_and_back_is_the_same(spec: FlowSpec) -> None:
    assert FlowSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"flow": {}}', "not JSON"])
def test_another_shape_is_refused(text: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        FlowSpec.from_json(text)


def test_a_secrets_value_is_nowhere_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAST_PASSWORD", "hunter2-is-secret")
    security = Security("SASL_PLAINTEXT", "PLAIN", "alice", Reference.parse("env:EAST_PASSWORD"))
    east, west = Cluster("east", ("east:9092",), security=security), Cluster("west", ("west:9092",))
    flow = Flow("east-west", "east", "west", Selection((".*",)))
    spec = FlowSpec.compile(Topology("shop", {"east": east, "west": west}, (flow,)), flow, "run-1")
    assert spec.source.librdkafka()["sasl.password"] == "hunter2-is-secret"
    for text in (spec.to_json(), repr(spec)):
        assert "hunter2" not in text
        assert "EAST_PASSWORD" in text
    assert json.loads(spec.to_json())["source"]["security"]["password"]["name"] == "EAST_PASSWORD"
    assert FlowSpec.from_json(spec.to_json()).source.security.password == security.password


def test_compiling_takes_both_clusters_and_all_aliases() -> None:
    made = {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("a", "b", "c")}
    flow = Flow("a-c", "a", "c", Selection(("orders",)))
    spec = FlowSpec.compile(Topology("shop", made, (flow,)), flow, "run-1")
    assert (spec.topology, spec.run, spec.flow) == ("shop", "run-1", flow)
    assert (spec.source, spec.target, spec.aliases) == (made["a"], made["c"], ("a", "b", "c"))
    assert spec.round_seconds == DEFAULT_ROUND
