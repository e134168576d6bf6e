"""What people ask of a channel: pausing drains it cleanly, resuming and trying again begin from the target's log."""

from __future__ import annotations

import pytest

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.partition.place import LogEnd
from tests.support.replicator.channels import (
    EPOCH,
    OUTAGE,
    PRODUCER_ID,
    SIDES,
    answer,
    feed,
    fetched,
    land,
    log,
    opened,
    send_all,
)

PARKING = Reason("AB204", "gaps inside a batch")
FULL = 1_000.0


def test_a_paused_channel_sends_reads_and_opens_nothing_more() -> None:
    channel = opened()
    feed(channel, log(0, 3, 3))
    channel.pause()
    assert (channel.can_send(), channel.wants_data(), channel.wants_opening(FULL)) == (False, False, False)
    assert (channel.status().state, channel.status().reason, channel.queued_bytes) == (PartitionState.PAUSED, None, 0)


def test_what_was_in_flight_is_answered_and_counted() -> None:
    channel = opened()
    feed(channel, log(0, 3, 3))
    (first,) = send_all(channel)
    channel.pause()
    assert channel.status().state is PartitionState.RUNNING, "it is reported as paused once nothing is outstanding"
    assert land(channel, first)
    assert (channel.position, channel.state, list(channel.in_flight)) == (3, PartitionState.PAUSED, [])
    assert channel.status().state is PartitionState.PAUSED


def test_a_fetch_answer_on_its_way_is_not_taken() -> None:
    channel = opened()
    asked_at, opening = channel.fetch_at, channel.opening
    channel.pause()
    assert channel.receive(fetched(log(0, 3)), asked_at, opening, 0.0) == 0


@pytest.mark.parametrize("how", ["refused", "lost", "reopened", "parked"])
def test_no_failure_ends_a_pause(how: str) -> None:
    channel = opened()
    feed(channel, log(0, 3))
    (sent_batch,) = send_all(channel)
    channel.pause()
    if how == "refused":
        channel.answered(sent_batch, answer(error=45), 0.0)
    elif how == "lost":
        channel.lost(sent_batch, OUTAGE, 0.0)
    elif how == "reopened":
        channel.reopen(OUTAGE, 0.0)
    else:
        channel.park(PARKING, 0.0)
    assert (channel.state, channel.reason, channel.wants_opening(FULL)) == (PartitionState.PAUSED, None, False)


def test_a_takeover_that_ends_during_a_pause_only_tells_the_position() -> None:
    channel = opened()
    channel.reopen(OUTAGE, 0.0)
    channel.pause()
    channel.open(SIDES, LogEnd(7, PRODUCER_ID, EPOCH, 7))
    assert (channel.state, channel.position, channel.wants_data()) == (PartitionState.PAUSED, 7, False)


def test_resuming_takes_over_anew_once_nothing_is_in_flight() -> None:
    channel = opened()
    feed(channel, log(0, 3))
    (sent_batch,) = send_all(channel)
    opening = channel.opening
    channel.pause()
    channel.resume()
    assert channel.opening > opening
    assert (channel.state, channel.wants_opening(0.0)) == (PartitionState.OPENING, False)
    land(channel, sent_batch)
    assert channel.wants_opening(0.0)


def test_resuming_what_is_not_paused_changes_nothing() -> None:
    channel = opened()
    channel.resume()
    assert (channel.state, channel.opening) == (PartitionState.RUNNING, 0)


def test_a_parked_channel_is_tried_at_once_and_its_backoff_begins_anew() -> None:
    channel = opened()
    channel.park(PARKING, 0.0)
    first = channel.retry_at
    for _ in range(6):
        channel.park(PARKING, 0.0)
    assert not channel.wants_opening(2 * first)
    channel.retry_now()
    assert channel.wants_opening(0.0)
    channel.park(PARKING, 0.0)
    assert channel.retry_at == first


def test_a_running_channel_that_is_restarted_takes_over_anew() -> None:
    channel = opened()
    channel.retry_now()
    assert (channel.state, channel.wants_opening(0.0), channel.can_send()) == (PartitionState.OPENING, True, False)


def test_a_paused_channel_stays_paused_when_it_is_restarted() -> None:
    channel = opened()
    channel.pause()
    channel.retry_now()
    assert channel.state is PartitionState.PAUSED


def test_patience_with_a_source_that_is_behind_counts_from_when_nothing_else_went_wrong() -> None:
    channel = opened()
    behind = Reason("AB210", "the source ends before its copy")
    channel.behind_since = 5.0
    channel.reopen(behind, 0.0)
    channel.park(behind, 0.0)
    assert channel.behind_since == 5.0
    channel.reopen(OUTAGE, 0.0)
    assert channel.behind_since is None
