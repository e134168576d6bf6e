"""Every fault under load, between clusters of three brokers, in all modes of offsets, with fresh and week-old records.

The faults come in an order that a seed decides; after each the copies go on by themselves. In the end nothing is lost,
doubled or out of order; with identical offsets every offset is the original's, or inside of a shifted run that is
recorded, where gaps were filled with transactions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.clusters.faults import FAULTS, OF_EXECUTORS, QUICK, Fault
from tests.support.clusters.scene import SMALL, WHOLE, Scene, opened

pytestmark = pytest.mark.spark


def _meet(scene: Scene, faults: Sequence[Fault], seed: int, *, by_another: bool = True) -> None:
    chance = random.Random(seed)
    scene.goes_on(0.0)
    for fault in chance.sample(faults, len(faults)):
        began = time.time()
        fault(scene, chance)
        scene.goes_on(time.time())
        print(f"{fault.__name__}: {time.time() - began:.0f} s until all partitions run")
    scene.check(by_another=by_another)


@pytest.mark.timeout(900)
def test_quick_faults_lose_and_double_nothing(tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, f"f{topic_name[-8:]}", SMALL, monkeypatch) as scene:
        _meet(scene, QUICK, 1, by_another=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_fault_loses_or_doubles_anything(
    tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    with opened(tmp_path, f"f{topic_name[-8:]}", WHOLE, monkeypatch) as scene:
        _meet(scene, FAULTS, seed)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_lost_executors_lose_and_double_nothing(
    tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, f"f{topic_name[-8:]}", WHOLE._replace(records=60_000), monkeypatch, executors=True) as scene:
        _meet(scene, OF_EXECUTORS, 1)
