"""Why a partition does not run: every row of the tables, by its code, its state and what it names."""

from __future__ import annotations

import pytest

from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.records.batch import UnreadableBatch
from reconciler.records.split import split
from reconciler.replicator.partition import reasons
from reconciler.wire import BrokerError, error_name
from tests.support.replicator.channels import CANNOT_PASS, answer

OPENING, PARKED = PartitionState.OPENING, PartitionState.PARKED


def test_a_damaged_batch_is_named() -> None:
    (batch,) = split(CANNOT_PASS["AB216"])
    reason = reasons.damaged(batch)
    assert (reason.code, "batch at source offset 5 is corrupt" in reason.text) == ("AB216", True)


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(UnreadableBatch) as caught:
        list(split(CANNOT_PASS["AB201"]))
    reason = reasons.unreadable(caught.value)
    assert (reason.code, "offset 5" in reason.text, "v1" in reason.text) == ("AB201", True, True)


@pytest.mark.parametrize(
    ("error", "state", "code", "words"),
    [
        (10, PARKED, "AB212", "the batch at offset 40 has 1,234 bytes, more than east.orders allows"),
        (18, PARKED, "AB212", "raise its max.message.bytes"),
        (29, PARKED, "AB213", "WRITE on topic east.orders is refused (TOPIC_AUTHORIZATION_FAILED)"),
        (31, PARKED, "AB213", "CLUSTER_AUTHORIZATION_FAILED"),
        (53, PARKED, "AB213", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (32, PARKED, "AB217", "the target refuses the batch at offset 40 of east.orders (INVALID_TIMESTAMP: why)"),
        (44, PARKED, "AB217", "POLICY_VIOLATION"),
        (87, PARKED, "AB217", "INVALID_RECORD"),
        (45, OPENING, "AB221", "another owner wrote offset 40 of east.orders first"),
        (47, OPENING, "AB221", "INVALID_PRODUCER_EPOCH"),
        (3, OPENING, "AB220", "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, OPENING, "AB220", "offset 40 (why)"),
        (7, OPENING, "AB220", "REQUEST_TIMED_OUT"),
        (19, OPENING, "AB220", "NOT_ENOUGH_REPLICAS"),
        (20, OPENING, "AB220", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        (56, OPENING, "AB220", "KAFKA_STORAGE_ERROR"),
        (100, OPENING, "AB220", "UNKNOWN_TOPIC_ID"),
        (9_999, OPENING, "AB220", "offset 40"),
    ],
)
def test_what_a_produce_error_means(error: int, state: PartitionState, code: str, words: str) -> None:
    verdict = reasons.why_failed("east.orders", 40, 1_234, answer(error=error, message="why"))
    assert verdict is not None
    assert (verdict[0], verdict[1].code) == (state, code)
    assert words in verdict[1].text


def test_a_batch_at_another_offset_is_no_success() -> None:
    assert reasons.why_failed("east.orders", 40, 1, answer(40)) is None
    verdict = reasons.why_failed("east.orders", 40, 1, answer(41))
    assert verdict is not None
    assert (verdict[0], verdict[1].code) == (OPENING, "AB211")
    assert "offset 40 landed at 41" in verdict[1].text


@pytest.mark.parametrize(
    ("error", "state", "code", "words"),
    [
        (29, PARKED, "AB213", "READ on topic orders is refused"),
        (1, OPENING, "AB220", "OFFSET_OUT_OF_RANGE"),
        (6, OPENING, "AB220", "NOT_LEADER"),
        (74, OPENING, "AB220", "topic orders"),
        (100, OPENING, "AB220", "UNKNOWN_TOPIC_ID"),
        (2, PARKED, "AB216", "cannot read topic orders from offset 7 on (CORRUPT_MESSAGE)"),
    ],
)
def test_what_a_fetch_error_means(error: int, state: PartitionState, code: str, words: str) -> None:
    found, reason = reasons.why_no_data(error, "orders", 7)
    assert (found, reason.code) == (state, code)
    assert words in reason.text


@pytest.mark.parametrize(
    ("side", "error", "state", "code", "words"),
    [
        ("target", 3, PARKED, "AB214", "does not exist at the target: run `anabranch apply`"),
        ("source", 3, PARKED, "AB214", "does not exist at the source: it was deleted"),
        ("source", 29, PARKED, "AB213", "DESCRIBE on topic orders is refused"),
        ("target", 5, OPENING, "AB220", "LEADER_NOT_AVAILABLE"),
    ],
)
def test_what_a_missing_topic_means(
    side: reasons.Side, error: int, state: PartitionState, code: str, words: str
) -> None:
    found, reason = reasons.missing_topic(side, "orders", error)
    assert (found, reason.code) == (state, code)
    assert words in reason.text


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (29, PARKED, "AB213"),
        (31, PARKED, "AB213"),
        (53, PARKED, "AB213"),
        (15, OPENING, "AB220"),
        (2, PARKED, "AB216"),
    ],
)
def test_what_a_refused_request_means(error: int, state: PartitionState, code: str) -> None:
    found, reason = reasons.why_refused(BrokerError(error, "why"), "READ", "topic east.orders")
    assert (found, reason.code) == (state, code)
    assert "topic east.orders" in reason.text
    assert error_name(error) in reason.text


@pytest.mark.parametrize(("error", "name"), [(1, "OFFSET_OUT_OF_RANGE"), (29, "TOPIC_AUTHORIZATION_FAILED")])
def test_errors_have_kafkas_names(error: int, name: str) -> None:
    assert error_name(error) == name
    assert str(BrokerError(error, "detail")) == f"{name}: detail"
    assert str(BrokerError(error)) == name


def test_who_is_not_allowed_something_is_named_with_the_cluster() -> None:
    east, west = (Cluster(alias, (f"{alias}:1",), security=Security(username=alias[0])) for alias in ("east", "west"))
    sides: tuple[reasons.Side, ...] = ("source", "target")
    said = []
    for side in sides:
        _, reason = reasons.why_refused(BrokerError(29), "READ", "topic orders", side)
        status = PartitionStatus("orders", 0, "east.orders", PARKED, -1, -1, reason)
        said.append(str(reasons.with_user(status, east, west).reason))
    head = "READ on topic orders is refused (TOPIC_AUTHORIZATION_FAILED): grant it to"
    assert said == [
        f"{head} user e on cluster east (east:1) [AB213]",
        f"{head} user w on cluster west (west:1) [AB213]",
    ]
    fine = PartitionStatus("orders", 0, "east.orders", PARKED, -1, -1)
    assert reasons.with_user(fine, east, west) is fine
