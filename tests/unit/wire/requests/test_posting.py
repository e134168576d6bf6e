"""A produce request that nobody awaits: its answer comes back, or why there is none, and either comes once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from reconciler.wire import ConnectionLost, ProduceAnswer, ProduceAsk, Wire, post
from reconciler.wire.protocol import fast_path
from reconciler.wire.protocol.producing import RawProduce, decode
from tests.support.wire.direct_ends import COPY, FakeDirect, Landed, produce_answer

NODE = 3
BATCHES = [ProduceAsk("orders", COPY, 0, b"x" * 100_000, b"head"), ProduceAsk("orders", COPY, 1, b"y", b"head")]


class FakeWire:
    """Has a direct connection, and notes what goes the library's way."""

    timeout_ms = 30_000

    def __init__(self, direct: FakeDirect | None) -> None:
        self.direct = direct
        self.others: list[Any] = []

    def direct_produce(self, node: int, by_id: bool) -> FakeDirect | None:
        assert (node, by_id) == (NODE, True)
        return self.direct

    def produce(self, *arguments: Any) -> None:
        self.others.append(arguments)

    def produced(self, names: dict[bytes, str] | None, data: memoryview) -> list[ProduceAnswer]:
        with fast_path.reading():
            return decode(names, data).answers

    def lost(self, error: BaseException) -> ConnectionLost:
        return ConnectionLost(str(error))


class Scene:
    def __init__(self, direct: FakeDirect | None) -> None:
        self.wire = FakeWire(direct)
        self.answers: list[Sequence[ProduceAnswer]] = []
        self.losses: list[ConnectionLost] = []

    def post(self) -> None:
        post(cast("Wire", self.wire), NODE, BATCHES, self.losses.append, self.answers.append, "transaction")


@pytest.fixture
def direct() -> FakeDirect:
    return FakeDirect(13)


def test_it_is_what_the_library_would_send(direct: FakeDirect) -> None:
    scene = Scene(direct)
    scene.post()
    request = RawProduce(13, FakeWire.timeout_ms, BATCHES, "transaction")
    request.with_header(1, "")
    whole = b"".join(request.encode(framed=True, header=True))
    (body,) = direct.bodies
    assert whole.endswith(body)
    assert len(whole) - len(body) == len(b"size" + b"keyv" + b"corr" + b"nn" + b"t")


def test_answers_come_back_in_turn_with_the_topics_names(direct: FakeDirect) -> None:
    scene = Scene(direct)
    scene.post()
    scene.post()
    direct.answer(produce_answer(Landed(0, 5), Landed(1, 7)))
    direct.answer(produce_answer(Landed(0, -1, 2, "broken"), Landed(1, 8)))
    first, second = scene.answers
    assert [(one.topic, one.partition, one.error, one.base_offset) for one in first] == [
        ("orders", 0, 0, 5),
        ("orders", 1, 0, 7),
    ]
    assert [(one.error, one.message) for one in second] == [(2, "broken"), (0, None)]
    assert not scene.losses


def test_who_has_no_answer_yet_hears_that_the_connection_fell(direct: FakeDirect) -> None:
    scene = Scene(direct)
    scene.post()
    scene.post()
    direct.answer(produce_answer(Landed(0, 5), Landed(1, 7)))
    direct.fall(OSError("gone"))
    assert len(scene.answers) == 1
    assert [str(error) for error in scene.losses] == ["gone"]


def test_what_cannot_be_read_closes_the_connection_and_is_no_answer(direct: FakeDirect) -> None:
    scene = Scene(direct)
    scene.post()
    scene.post()
    direct.answer(produce_answer(Landed(0, 5))[:-9])
    assert direct.refused is not None
    assert not scene.answers
    assert len(scene.losses) == 2, "who sent it and who came behind hear of it, each once"


@pytest.mark.parametrize("is_there", [False, True])
def test_without_an_open_one_the_library_sends_it(direct: FakeDirect, is_there: bool) -> None:
    direct.is_open = False
    scene = Scene(direct if is_there else None)
    scene.post()
    assert scene.wire.others == [(NODE, BATCHES, scene.losses.append, scene.answers.append, "transaction")]
    assert not direct.bodies
