"""Produce requests that are not awaited: by a direct connection if there is one, without a future and a timer each.

`writer` sends what it has through this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reconciler.wire.protocol.fast_path import UnreadableAnswer
from reconciler.wire.protocol.producing import RawProduce, have_ids
from reconciler.wire.protocol.values import ConnectionLost, ProduceAnswer, ProduceAsk
from reconciler.wire.requests.client import Wire


def post(
    wire: Wire,
    node: int,
    asks: Sequence[ProduceAsk],
    lost: Callable[[ConnectionLost], None],
    answered: Callable[[Sequence[ProduceAnswer]], None],
    transactional_id: str | None = None,
) -> None:
    """Write one batch to each of some partitions that one broker leads; have all replicas take it before it answers.

    The request leaves before this returns, so requests leave in the order of the calls, those of `Wire.produce` among
    them.

    Args:
        wire: to the cluster.
        node: the broker.
        asks: at most one batch for each partition.
        lost: as for `Wire.produce`.
        answered: likewise.
        transactional_id: likewise.
    """
    direct = wire.direct_produce(node, have_ids(asks))
    if direct is None or not direct.is_open:
        wire.produce(node, asks, lost, answered, transactional_id)
        return
    request = RawProduce(direct.version, wire.timeout_ms, asks, transactional_id)
    names = request.names

    def take(data: memoryview) -> None:
        try:
            answers = wire.produced(names, data)
        except UnreadableAnswer as error:
            lost(wire.lost(direct.refuse(error)))
            return
        answered(answers)

    direct.send_pieces(request.body(), take, lambda error: lost(wire.lost(error)))
