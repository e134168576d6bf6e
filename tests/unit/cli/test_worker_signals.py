"""A worker of connectors has a handler for signals as long as it runs: it ends in order whenever one comes."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.cli.main import main

WORKER = importlib.import_module("reconciler.cli.migrate.connect_distributed")


class Host:
    """Stands for what follows the connectors.

    Attributes:
        ended: whether it was ended.
    """

    def __init__(self, begun: Callable[[], None]) -> None:
        self.is_ready = threading.Event()
        self.is_ready.set()
        self.ended = False
        self._begun = begun

    def begin(self) -> Callable[[], None]:
        self._begun()
        return self._end

    def _end(self) -> None:
        self.ended = True


def refuse(*_: object, **__: object) -> None:
    message = "no handler of the worker is installed"
    raise AssertionError(message)


def nothing() -> None:
    """Do nothing."""


def terminated(*_: object, **__: object) -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a worker; without its handlers a signal raises an error instead of ending the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "worker.properties"
    path.write_text("bootstrap.servers=127.0.0.1:1\ngroup.id=group\nlisteners=http://127.0.0.1:0\n")

    @contextmanager
    def answering(*_: object) -> Iterator[str]:
        yield "http://127.0.0.1:1"

    monkeypatch.setattr("reconciler.service.connect.app.answering", answering)
    before = signal.signal(signal.SIGTERM, refuse)
    yield path
    signal.signal(signal.SIGTERM, before)


def ends(host: Host, file: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("reconciler.service.connect.worker.WorkerHost", lambda *_: host)
    code = main(["connect-distributed", str(file)])
    assert host.ended
    assert signal.getsignal(signal.SIGTERM) is refuse
    return code


def test_a_signal_before_the_run_has_its_own_handlers_ends_it_in_order(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WORKER, "replicate", terminated)
    assert ends(Host(nothing), file, monkeypatch) == 0


def test_a_signal_while_it_begins_ends_it_once_it_has_begun(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKER, "replicate", refuse)
    assert ends(Host(terminated), file, monkeypatch) == 0


def test_a_signal_while_there_is_nothing_to_copy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKER, "replicate", refuse)
    host = Host(nothing)
    host.is_ready.clear()
    later = threading.Timer(0.3, terminated_from_elsewhere)
    later.start()
    assert ends(host, file, monkeypatch) == 0
    later.join()


def terminated_from_elsewhere() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
