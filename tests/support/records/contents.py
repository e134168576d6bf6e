"""Records of every shape, for hypothesis: with and without key, value and headers, names of headers twice."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.records.batches import Content

bodies = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.sampled_from(["trace", "trace", "", "id"]), bodies), max_size=2).map(tuple)


def contents_since(earliest: int) -> st.SearchStrategy[Content]:
    """Return records with times from `earliest` on, often near each other."""
    times = st.integers(earliest, 2**42) | st.integers(1_000, 1_100)
    return st.builds(Content, times, bodies, bodies, headers)


contents = contents_since(0)
