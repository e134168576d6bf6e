"""The forges that the pipelines' tests run against, each test on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forge_github import GitHubDouble
from tests.support.forge_gitlab import GitLabDouble
from tests.support.forges import ForgeDouble, Store
from tests.support.gitops import Job


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as running:
        yield running


@pytest.fixture(params=[GitHubDouble, GitLabDouble], ids=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, store: Store) -> Iterator[ForgeDouble]:
    with request.param(store) as running:
        yield running


@pytest.fixture
def job(forge: ForgeDouble, tmp_path: Path) -> Job:
    return Job(tmp_path, forge.variables())
