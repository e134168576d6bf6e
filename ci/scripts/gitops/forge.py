"""The words in which the scripts speak of GitHub and of GitLab: a forge, its comments and issues, a reviewed plan.

A merge request is called a pull request here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


class NotReviewed(Exception):
    """There is no plan that was reviewed for this commit; the message says why and what to do."""


@dataclass(frozen=True)
class Comment:
    """A comment of a pull request.

    Attributes:
        identity: what the forge calls it.
        author: login of who wrote it.
        body: Markdown.
    """

    identity: int
    author: str
    body: str


@dataclass(frozen=True)
class Issue:
    """An open issue.

    Attributes:
        number: within its repository.
        author: login of who opened it.
        title: one line.
        body: Markdown.
    """

    number: int
    author: str
    title: str
    body: str


@dataclass(frozen=True)
class Reviewed:
    """A plan file that was shown in a pull request.

    Attributes:
        pull: number of the pull request.
        commit: the newest commit of its branch, of which the plan was made.
        run: of the workflow or pipeline that made it.
        content: of the plan file.
    """

    pull: int
    commit: str
    run: int
    content: bytes


class Forge(Protocol):
    """GitHub or GitLab, for one repository. Every method may raise `ApiError`."""

    @property
    def sleep(self) -> Callable[[float], None]:
        """How seconds are waited."""

    def me(self) -> str:
        """Return the login under which we write."""

    def comments(self, pull: int) -> Iterator[Comment]:
        """Yield all comments of a pull request, the oldest first."""

    def add_comment(self, pull: int, body: str) -> None:
        """Write a new comment."""

    def edit_comment(self, pull: int, identity: int, body: str) -> None:
        """Give a comment another text."""

    def issues(self, label: str) -> Iterator[Issue]:
        """Yield all open issues with a label."""

    def open_issue(self, title: str, body: str, label: str) -> None:
        """Open an issue."""

    def edit_issue(self, number: int, title: str, body: str) -> None:
        """Give an issue another title and text."""

    def close_issue(self, number: int, comment: str) -> None:
        """Say why, and close an issue."""

    def reviewed(self, commit: str, branch: str, name: str, made_by: str | None) -> Reviewed:
        """Return the plan that was reviewed with the pull request of a merged commit.

        Args:
            commit: what the merge made of the branch.
            branch: that was merged into.
            name: of the topology.
            made_by: the workflow's file or the job that makes plans; None: as it is called in our pipelines.

        Raises:
            NotReviewed: there is none.
        """
