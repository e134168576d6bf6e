"""What the pipelines do when a forge is busy, or away: ask again within bounds, as long as it is told to wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from gitops.api import LONGEST_WAIT, TRIES, Api, ApiError, NotPermitted, Uncertain
from tests.support.ci.forge_github import REPOSITORY, GitHubDouble
from tests.support.ci.forges import Fault, Store

COMMENTS = f"/repos/{REPOSITORY}/issues/7/comments"


@pytest.fixture
def github(store: Store) -> Iterator[GitHubDouble]:
    with GitHubDouble(store) as running:
        yield running


class Waiting:
    """An API whose waits are noted and not waited for."""

    def __init__(self, address: str, token: str) -> None:
        self.waits: list[float] = []
        self.api = Api(address, {"Authorization": f"Bearer {token}"}, self.waits.append)


@pytest.fixture
def waiting(github: GitHubDouble) -> Waiting:
    return Waiting(github.address, github.token)


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (502, {}, 1.0),
        (503, {"Retry-After": "7"}, 7.0),
        (429, {"Retry-After": "11"}, 11.0),
        (403, {"Retry-After": "5"}, 5.0),
        (403, {"X-RateLimit-Remaining": "0"}, 1.0),
        (429, {"Retry-After": "soon"}, 1.0),
    ],
)
def test_once_busy_is_asked_again_after_the_wait_that_was_asked_for(
    github: GitHubDouble, waiting: Waiting, status: int, headers: dict[str, str], wait: float
) -> None:
    github.note(7, "alice", "hello")
    github.faults.append(Fault("GET", "/comments", status, headers))
    assert [one["body"] for one in waiting.api.pages(COMMENTS)] == ["hello"]
    assert waiting.waits == [wait]


def test_a_date_or_the_end_of_a_limit_is_waited_for(github: GitHubDouble, waiting: Waiting) -> None:
    at = time.time() + 30
    github.faults.append(Fault("GET", "/comments", 503, {"Retry-After": formatdate(at, usegmt=True)}))
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(at))}
    github.faults.append(Fault("GET", "/comments", 403, reset))
    assert list(waiting.api.pages(COMMENTS)) == []
    assert len(waiting.waits) == 2
    assert all(10 < wait <= 30 for wait in waiting.waits)


def test_it_gives_up_after_some_tries_and_says_what_it_was_told(github: GitHubDouble, waiting: Waiting) -> None:
    github.faults += [Fault("GET", "/comments", 502)] * (TRIES + 1)
    with pytest.raises(ApiError, match=rf"GET {COMMENTS}: 502 a fault, after {TRIES} of {TRIES} tries"):
        list(waiting.api.pages(COMMENTS))
    assert waiting.waits == [1.0, 2.0, 4.0]
    assert len(github.asked) == TRIES


def test_nobody_is_waited_for_longer_than_a_minute(github: GitHubDouble, waiting: Waiting) -> None:
    github.faults.append(Fault("GET", "/comments", 429, {"Retry-After": str(LONGEST_WAIT + 1)}))
    with pytest.raises(ApiError, match="429 a fault, after 1 of 4 tries"):
        list(waiting.api.pages(COMMENTS))
    assert waiting.waits == []


@pytest.mark.parametrize(
    ("status", "kind"), [(401, ApiError), (403, NotPermitted), (404, NotPermitted), (422, ApiError)]
)
def test_what_will_not_heal_is_asked_once(
    github: GitHubDouble, waiting: Waiting, status: int, kind: type[Exception]
) -> None:
    github.faults.append(Fault("GET", "/comments", status))
    with pytest.raises(ApiError, match=f"{status} a fault") as caught:
        list(waiting.api.pages(COMMENTS))
    assert type(caught.value) is kind
    assert (len(github.asked), waiting.waits) == (1, [])


def test_a_post_is_sent_again_only_where_it_was_surely_not_carried_out(github: GitHubDouble, waiting: Waiting) -> None:
    github.faults.append(Fault("POST", "/comments", 429))
    waiting.api.call("POST", COMMENTS, {"body": "hello"})
    assert [one.body for one in github.notes[7]] == ["hello"]
    github.faults.append(Fault("POST", "/comments", 504, {"Retry-After": "3"}, is_carried_out=True))
    with pytest.raises(Uncertain) as caught:
        waiting.api.call("POST", COMMENTS, {"body": "again"})
    assert caught.value.wait == 3.0
    assert [one.body for one in github.notes[7]] == ["hello", "again"]


def test_a_forge_that_is_not_there_is_an_error_with_its_reason(github: GitHubDouble) -> None:
    with GitHubDouble(Store()) as gone:
        pass
    waiting = Waiting(gone.address, gone.token)
    with pytest.raises(ApiError, match="Connection refused, after 4 of 4 tries"):
        waiting.api.call("POST", COMMENTS, {"body": "hello"})
    assert len(waiting.waits) == TRIES - 1


def test_an_answer_that_is_no_json_is_no_empty_list(github: GitHubDouble, waiting: Waiting, store: Store) -> None:
    store.files["page"] = b"<html>a login page</html>"
    with pytest.raises(ApiError, match="no JSON"):
        Api(store.address, {}, waiting.waits.append).call("GET", "/page")


def test_pages_are_counted_and_the_token_goes_nowhere_else(github: GitHubDouble, waiting: Waiting) -> None:
    for number in range(7):
        github.note(7, "alice", str(number))
    assert [one["body"] for one in waiting.api.pages(COMMENTS)] == list("0123456")
    assert [one.path for one in github.asked] == [f"{COMMENTS}?per_page=100&page={page}" for page in (1, 2, 3)]


def test_a_redirect_is_followed_by_downloads_alone(github: GitHubDouble, waiting: Waiting, store: Store) -> None:
    store.files["secret.txt"] = b"content"
    github.faults.append(Fault("GET", "/zip", 302, {"Location": f"{store.address}/secret.txt"}))
    assert waiting.api.download("/zip") == b"content"
    assert [key for one in store.asked for key in one.headers if key.lower() == "authorization"] == []
    github.faults.append(Fault("GET", "/comments", 302, {"Location": f"{store.address}/secret.txt"}))
    with pytest.raises(ApiError, match="302"):
        list(waiting.api.pages(COMMENTS))
    assert len(store.asked) == 1
    github.faults.append(Fault("GET", "/zip", 302, {"Location": "file:///etc/hostname"}))
    with pytest.raises(ApiError, match="leads nowhere"):
        waiting.api.download("/zip")
    github.faults += [Fault("GET", "/zip", 302, {"Location": "/zip"})] * 9
    with pytest.raises(ApiError, match="leads nowhere"):
        waiting.api.download("/zip")
