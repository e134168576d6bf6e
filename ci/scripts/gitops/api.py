"""One REST API over HTTP: pages, downloads, and retries within bounds.

`github` and `gitlab` call it. What is asked twice must do no harm: a POST whose fate is unknown is not sent again but
raised as `Uncertain`, so that the caller looks first whether it was carried out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

TRIES = 4
LONGEST_WAIT = 60.0
"""Seconds; whoever asks for a longer wait is not waited for."""

_TIMEOUT = 30.0
_MAX_HOPS = 5
_PAGE = 100
_OK = 300
_FORBIDDEN, _NOT_FOUND, _GONE, _TOO_MANY, _SERVER = 403, 404, 410, 429, 500
_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_DOWNLOAD = 256 * 1024 * 1024


class ApiError(Exception):
    """The API did not do what was asked of it."""


class NotPermitted(ApiError):
    """The token may not do this, or not even see it: 403, 404, 410, or there is no token."""


class Uncertain(ApiError):
    """A POST may have been carried out or not.

    Attributes:
        wait: seconds to let pass before looking.
    """

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Answer:
    """What came back: status, headers and body."""

    status: int
    headers: Message
    content: bytes

    def json(self) -> Any:
        """Return the body as JSON types.

        Raises:
            ApiError: it is no JSON.
        """
        try:
            return json.loads(self.content)
        except ValueError:
            message = f"answered {self.status} with something that is no JSON; is the address of the API right?"
            raise ApiError(message) from None


class _NoRedirects(HTTPRedirectHandler):
    """Leaves redirects to `Api.download`: urllib would send the token wherever an answer points to."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Api:
    """An API below one address.

    Args:
        base: its address, as `https://api.example/v4`.
        headers: of every request, the token among them; they are sent to that address only.
        sleep: how seconds are waited.
    """

    def __init__(self, base: str, headers: Mapping[str, str], sleep: Callable[[float], None] = time.sleep) -> None:
        self._base = base.rstrip("/")
        self._headers = dict(headers)
        self._opener = build_opener(_NoRedirects)
        self.sleep = sleep

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the JSON that answers a request; see `_answer` for what is raised."""
        asked = f"{path}?{urlencode(query)}" if query else path
        return self._answer(method, f"{self._base}{asked}", body).json()

    def pages(self, path: str, query: Mapping[str, Any] | None = None, key: str | None = None) -> Iterator[Any]:
        """Yield the items of a list, page after page.

        Args:
            path: below the base.
            query: what else to ask for.
            key: under which an object holds the list, where the answer is an object.
        """
        page = 0
        more = True
        while more:
            page += 1
            asked = urlencode({**(query or {}), "per_page": _PAGE, "page": page})
            answer = self._answer("GET", f"{self._base}{path}?{asked}")
            # Only that there is a next page is believed, never where: an address of another host would get the token.
            more = 'rel="next"' in (answer.headers.get("Link") or "")
            yield from answer.json()[key] if key else answer.json()

    def download(self, path: str) -> bytes:
        """Return a file, wherever the API points to; other hosts do not get the token."""
        address = f"{self._base}{path}"
        for _ in range(_MAX_HOPS):
            answer = self._answer("GET", address, may_redirect=True)
            if answer.status not in _REDIRECTS:
                return answer.content
            address = urljoin(address, answer.headers.get("Location") or "")
            if urlsplit(address).scheme not in ("http", "https"):
                break
        message = f"{path} leads nowhere"
        raise ApiError(message)

    def _answer(
        self, method: str, address: str, body: Mapping[str, Any] | None = None, may_redirect: bool = False
    ) -> Answer:
        """Ask until there is an answer, at most `TRIES` times.

        Raises:
            NotPermitted: 403, 404 or 410.
            Uncertain: a POST that may have been carried out.
            ApiError: anything else, with what the API said.
        """
        what = f"{method} {urlsplit(address).path}"
        for tried in range(1, TRIES + 1):
            wait = float(2 ** (tried - 1))
            is_known = True
            try:
                answer = self._once(method, address, body)
            except (OSError, HTTPException) as error:
                reason = error.reason if isinstance(error, URLError) else error
                is_known = isinstance(reason, ConnectionRefusedError)
                failure = f"{what}: {reason}"
            else:
                if answer.status < _OK or (may_redirect and answer.status in _REDIRECTS):
                    return answer
                failure = f"{what}: {answer.status} {_said(answer)}"
                _raise_unless_busy(answer, failure)
                is_known = answer.status < _SERVER
                wait = max(wait, _asked_wait(answer.headers))
            if method == "POST" and not is_known:
                raise Uncertain(failure, min(wait, LONGEST_WAIT))
            if wait > LONGEST_WAIT or tried == TRIES:
                break
            self.sleep(wait)
        message = f"{failure}, after {tried} of {TRIES} tries"
        raise ApiError(message)

    def _once(self, method: str, address: str, body: Mapping[str, Any] | None) -> Answer:
        is_ours = urlsplit(address)[:2] == urlsplit(self._base)[:2]
        headers = {"User-Agent": "anabranch", **(self._headers if is_ours else {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = Request(address, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                content = answer.read(_MAX_DOWNLOAD + 1)
                if len(content) > _MAX_DOWNLOAD:
                    message = f"{method} {urlsplit(address).path}: more than {_MAX_DOWNLOAD} bytes"
                    raise ApiError(message)
                return Answer(answer.status, answer.headers, content)
        except HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())


def _raise_unless_busy(answer: Answer, failure: str) -> None:
    """Raise what another try would not heal.

    Raises:
        NotPermitted: 403, 404, 410, unless it only says that too much was asked.
        ApiError: any other error of ours.
    """
    if answer.status >= _SERVER or answer.status == _TOO_MANY:
        return
    if answer.status == _FORBIDDEN and (
        answer.headers.get("Retry-After") or answer.headers.get("X-RateLimit-Remaining") == "0"
    ):
        return
    raise (NotPermitted if answer.status in (_FORBIDDEN, _NOT_FOUND, _GONE) else ApiError)(failure)


def _asked_wait(headers: Message) -> float:
    """Return the seconds that an answer asks to wait."""
    after = headers.get("Retry-After")
    if after:
        try:
            return float(after)
        except ValueError:
            return _until(after)
    if headers.get("X-RateLimit-Remaining") == "0":
        reset = headers.get("X-RateLimit-Reset") or ""
        return max(0.0, float(reset) - time.time()) if reset.isdigit() else 0.0
    return 0.0


def _until(date: str) -> float:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _said(answer: Answer) -> str:
    """Return what an error says of itself, in one line."""
    try:
        value = json.loads(answer.content)
        said = value.get("message") or value.get("error") if isinstance(value, dict) else value
    except ValueError:
        said = answer.content[:200].decode(errors="replace")
    return " ".join(str(said).split())[:300]
