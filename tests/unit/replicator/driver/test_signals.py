from __future__ import annotations

import os
import signal

import pytest
from confluent_kafka.admin import AdminClient

from reconciler.replicator.driver.signals import StoppedEarly, StopSignals


class _Name:
    """A name whose text cannot be had without being told to stop."""

    def __str__(self) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return "bootstrap.servers"


def test_a_stop_that_c_code_turns_into_an_error_of_its_own_is_still_a_stop() -> None:
    with StopSignals() as signals:
        with pytest.raises(TypeError) as made:
            AdminClient({_Name(): "127.0.0.1:9"})
        assert (signals.asked, signals.number) == (True, signal.SIGTERM)
        assert signals.ended(made.value)


def test_errors_are_no_stop_while_nobody_asked_for_one() -> None:
    with StopSignals() as signals:
        assert not signals.ended(TypeError("a fault"))
        assert signals.ended(StoppedEarly())


def test_what_is_no_error_goes_on_its_way() -> None:
    with StopSignals() as signals:
        signals.asked = True
        assert not signals.ended(SystemExit(2))
