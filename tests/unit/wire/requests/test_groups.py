"""What coordinators answer about groups, from brokers of every age."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from kafka.protocol.admin.groups import ListGroupsResponse
from kafka.protocol.consumer.group import OffsetFetchResponse

from reconciler.wire import BrokerError, ErrorCode
from reconciler.wire.requests import groups
from reconciler.wire.requests.groups import CommittedOffset, ListedGroup

Answer = TypeVar("Answer")


class Broker:
    """Answers requests in one version of theirs, encoded and decoded as on a socket."""

    def __init__(self, version: int, answers: dict[str, Any]) -> None:
        self._version = version
        self._answers = answers
        self.asked: list[str] = []

    async def ask(self, request: Any, node: int) -> Any:
        assert node == 7
        if request.name == "ListGroupsRequest":
            return self._told(self._answers["list"])
        if request._min_version > self._version:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        named = [group.group_id for group in request.groups or ()] or [request.group_id]
        self.asked.append(",".join(named))
        return self._told(self._answers[",".join(named)])

    def _told(self, answer: Any) -> Any:
        data = answer.encode(version=self._version)
        return type(answer).decode(data, version=self._version)


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run what waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        found: Answer = end.value
        return found
    message = "it waits"
    raise AssertionError(message)


def of_one(offset: int, error: int = 0, partition_error: int = 0) -> OffsetFetchResponse:
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partitions = [
        topic.OffsetFetchResponsePartition(
            partition_index=number,
            committed_offset=committed,
            committed_leader_epoch=3,
            metadata=said,
            error_code=partition_error,
        )
        for number, committed, said in ((0, offset, "said"), (1, -1, ""), (2, offset + 1, None))
    ]
    return OffsetFetchResponse(topics=[topic(name="orders", partitions=partitions)], error_code=error)


def of_many(*named: tuple[str, int, int]) -> OffsetFetchResponse:
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    partition = topic.OffsetFetchResponsePartitions
    return OffsetFetchResponse(
        groups=[
            group(
                group_id=name,
                error_code=error,
                topics=[
                    topic(
                        name="orders",
                        partitions=[
                            partition(
                                partition_index=0,
                                committed_offset=offset,
                                committed_leader_epoch=3,
                                metadata="said",
                                error_code=0,
                            )
                        ],
                    )
                ],
            )
            for name, offset, error in named
        ]
    )


@pytest.mark.parametrize("version", [8, 9])
def test_groups_of_one_coordinator_are_one_request(version: int) -> None:
    broker = Broker(version, {"a,b": of_many(("a", 5, 0), ("b", 6, 30))})
    found = run(groups.committed(broker, 7, ["a", "b"]))  # type: ignore[arg-type]
    assert found["a"] == {("orders", 0): CommittedOffset(5, "said", 3)}
    assert isinstance(found["b"], BrokerError)
    assert found["b"].code == 30
    assert broker.asked == ["a,b"]


@pytest.mark.parametrize(("version", "epoch"), [(2, -1), (4, -1), (5, 3), (7, 3)])
def test_brokers_before_3_0_are_asked_for_one_group_after_the_other(version: int, epoch: int) -> None:
    broker = Broker(version, {"a": of_one(5), "b": of_one(0, error=16), "c": of_one(8, partition_error=29)})
    found = run(groups.committed(broker, 7, ["a", "b", "c"]))  # type: ignore[arg-type]
    assert broker.asked == ["a", "b", "c"]
    assert found["a"] == {
        ("orders", 0): CommittedOffset(5, "said", epoch),
        ("orders", 2): CommittedOffset(6, "", epoch),
    }
    assert isinstance(found["b"], BrokerError)
    assert found["c"] == {}


@pytest.mark.parametrize(("version", "kinds"), [(0, ["consumer", "", "share"]), (5, ["consumer", "", "share"])])
def test_groups_are_listed_with_what_they_are(version: int, kinds: list[str]) -> None:
    group = ListGroupsResponse.ListedGroup
    told = [("a", "consumer", "Classic"), ("b", "", "Classic"), ("c", "share", "Share")]
    listed = [
        group(group_id=name, protocol_type=protocol, group_state="Empty", group_type=kind)
        for name, protocol, kind in told
    ]
    broker = Broker(version, {"list": ListGroupsResponse(error_code=0, groups=listed)})
    assert run(groups.listed(broker, 7)) == [  # type: ignore[arg-type]
        ListedGroup(name, kind) for name, kind in zip("abc", kinds, strict=True)
    ]
    broker = Broker(version, {"list": ListGroupsResponse(error_code=14, groups=[])})
    with pytest.raises(BrokerError):
        run(groups.listed(broker, 7))  # type: ignore[arg-type]
