"""The demo leaves nothing behind, however it is ended; the story is made up."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from reconciler.cli.main import main
from reconciler.demo import story


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_it_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    ended: list[str] = []

    class Story:
        topology = SimpleNamespace(clusters=("east", "west"))

        def __init__(self, _pattern: str) -> None: ...

        def __enter__(self) -> Story:
            return self

        def __exit__(self, *_: object) -> None:
            ended.append("all")

        def start_clusters(self) -> None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(story, "Story", Story)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        assert main(["demo"]) == 128 + number
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert ended == ["all"]
