"""Requests about transactions to brokers that do not know all of them."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from reconciler.wire import BrokerError, Wire
from reconciler.wire.requests.transactions import was_used

pytestmark = pytest.mark.slow

UNSUPPORTED_VERSION, CONCURRENT_TRANSACTIONS = 35, 51


class Refusing:
    """Answers every request with one error."""

    def __init__(self, code: int) -> None:
        self._code = code

    async def coordinator(self, _transactional_id: str) -> int:
        return 1

    async def transaction_code(self, _node: int, _transactional_id: str) -> int:
        raise BrokerError(self._code)


def test_where_the_broker_cannot_tell_an_id_may_have_been_used() -> None:
    """DescribeTransactions came with Kafka 3.0 (KIP-664)."""
    assert asyncio.run(was_used(cast("Wire", Refusing(UNSUPPORTED_VERSION)), "id"))


def test_any_other_refusal_is_told() -> None:
    with pytest.raises(BrokerError, match="CONCURRENT_TRANSACTIONS"):
        asyncio.run(was_used(cast("Wire", Refusing(CONCURRENT_TRANSACTIONS)), "id"))
