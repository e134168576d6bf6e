"""A Spark cluster whose master is a stand-in, and what deploys on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.deploy.standalone import StandaloneDeployer
from reconciler.model.base.errors import EnvironmentFault
from tests.support.deploying import FILE
from tests.support.spark_master import ENVIRON, TASKS, MasterStandIn


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MasterStandIn]:
    made = MasterStandIn(tmp_path / "work", ENVIRON)
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path: Path, master: MasterStandIn) -> Iterator[StandaloneDeployer]:
    made = StandaloneDeployer(tmp_path / "dc1", lambda _: TASKS)
    made.folder.make()
    made.folder.write_files([FILE])
    yield made
    with suppress(EnvironmentFault):
        made.end(made.folder.generations())
