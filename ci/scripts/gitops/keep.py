"""One comment for each topology, and one open issue for its drift, however often the pipelines run."""

from __future__ import annotations

from collections.abc import Callable

from gitops.api import TRIES, ApiError, Uncertain
from gitops.forge import Forge, Issue
from gitops.text import has_marker


def keep_comment(forge: Forge, pull: int, mark: str, body: str) -> str:
    """Make one comment say `body`: ours with this marker, or a new one. Return what was done.

    Raises:
        ApiError: the forge does not do it; `NotPermitted`, where the token may not comment.
    """

    def once() -> str:
        me = forge.me()
        for comment in forge.comments(pull):
            if comment.author == me and has_marker(comment.body, mark):
                if _is_same(comment.body, body):
                    return "the comment says so already"
                forge.edit_comment(pull, comment.identity, body)
                return "the comment was updated"
        forge.add_comment(pull, body)
        return "a comment was written"

    return _settled(forge, once)


def keep_issue(forge: Forge, label: str, mark: str, title: str, body: str) -> str:
    """Make one open issue say `title` and `body`: ours with this marker, or a new one. Return what was done.

    Raises:
        ApiError: the forge does not do it.
    """

    def once() -> str:
        issue = _ours(forge, label, mark)
        if issue is None:
            forge.open_issue(title, body, label)
            return "an issue was opened"
        if issue.title == title and _is_same(issue.body, body):
            return f"issue {issue.number} says so already"
        forge.edit_issue(issue.number, title, body)
        return f"issue {issue.number} was updated"

    return _settled(forge, once)


def close_issue(forge: Forge, label: str, mark: str, comment: str) -> str:
    """Close the open issue with this marker, if there is one. Return what was done.

    Raises:
        ApiError: the forge does not do it.
    """

    def once() -> str:
        issue = _ours(forge, label, mark)
        if issue is None:
            return "no issue is open"
        forge.close_issue(issue.number, comment)
        return f"issue {issue.number} was closed"

    return _settled(forge, once)


def _ours(forge: Forge, label: str, mark: str) -> Issue | None:
    me = forge.me()
    ours = (one for one in forge.issues(label) if one.author == me and has_marker(one.body, mark))
    return min(ours, key=lambda one: one.number, default=None)


def _settled(forge: Forge, once: Callable[[], str]) -> str:
    """Look and act, and do both again where nobody knows what became of the act."""
    for _ in range(TRIES):
        try:
            return once()
        except Uncertain as error:
            last = error
            forge.sleep(error.wait)
    message = f"{last}, {TRIES} times"
    raise ApiError(message)


def _is_same(found: str, wanted: str) -> bool:
    # Forges keep texts with other ends of lines, and without blanks at the end.
    return found.replace("\r\n", "\n").strip() == wanted.strip()
