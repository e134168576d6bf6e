"""Which clients the host of an ACL matches, as brokers decide it; a contract test holds the same cases against one."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.acls.authorizer import Authorizer
from reconciler.model.acls.binding import Binding
from reconciler.model.acls.hosts import contains, is_range, matches, meet
from reconciler.model.acls.requirements import ResourcePattern
from tests.support.security.acl_hosts import CASES

ADDRESSES = st.ip_addresses().map(str)
RANGES = st.tuples(st.ip_addresses(), st.integers(0, 128)).map(
    lambda pair: f"{pair[0]}/{pair[1] if pair[0].version == 6 else pair[1] % 33}"
)
HOSTS = st.one_of(st.just("*"), ADDRESSES, RANGES)


@pytest.mark.parametrize(("address", "host", "expected"), CASES)
def test_a_host_matches_as_brokers_have_it(address: str, host: str, expected: bool) -> None:
    assert matches(host, address) is expected


@given(HOSTS, HOSTS, ADDRESSES)
def test_what_contains_another_matches_all_that_it_does(wide: str, narrow: str, address: str) -> None:
    if contains(wide, narrow):
        assert matches(wide, address) >= matches(narrow, address)
        assert meet(wide, narrow) in (narrow, wide)


@given(HOSTS, HOSTS, st.data())
def test_where_two_meet_all_clients_of_both_are_and_no_others(one: str, other: str, data: st.DataObject) -> None:
    both = meet(one, other)
    inside = [str(ip_network(host, strict=False)[0]) for host in (one, other) if is_range(host)]
    for address in [data.draw(ADDRESSES), *inside, *(host for host in (one, other) if "/" not in host and host != "*")]:
        expected = matches(one, address) and matches(other, address)
        assert (both is not None and matches(both, address)) is expected


@given(RANGES, st.data())
def test_a_range_contains_its_halves_and_none_of_them_the_other(host: str, data: st.DataObject) -> None:
    network = ip_network(host, strict=False)
    halves = [*network.subnets()]
    if len(halves) == 2:
        low, high = map(str, halves)
        assert contains(host, low)
        assert contains(host, high)
        assert meet(low, high) is None
        assert not contains(low, host)
    assert contains(host, str(ip_address(int(network[0]) if network.version == 4 else network[-1])))


def test_a_cluster_that_takes_no_ranges_lets_them_match_nobody() -> None:
    topic = ResourcePattern("pay")
    allowed = Binding("topic", topic, "User:alice", "READ", "ALLOW", "10.0.0.0/8")
    denied = Binding("topic", topic, "User:bob", "READ", "DENY", "10.0.0.0/8")
    every = Binding("topic", topic, "User:bob", "READ")
    for takes_ranges in (False, True):
        here = Authorizer((allowed, denied, every), takes_ranges=takes_ranges)
        assert here.allows("User:alice", "READ", "pay", "10.1.2.3") is takes_ranges
        assert here.allows("User:bob", "READ", "pay", "10.1.2.3") is not takes_ranges
        assert here.allows_all_of(every, "pay") is not takes_ranges
