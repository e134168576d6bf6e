"""GitHub and GitLab on this machine: what the pipelines ask of their APIs, with tokens, pages and faults.

`GitHubDouble` and `GitLabDouble` speak two languages over the same contents. Files come from a second server, a store,
which must never see a token.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

LOCAL = "127.0.0.1"
PAGE = 3
"""Items of a page, whatever is asked for."""


class Wrong(Exception):
    """An answer that is an error: its status and what it says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Note:
    """A comment."""

    identity: int
    author: str
    body: str


@dataclass
class Issue:
    """An issue, or what GitHub lists among them: a pull request."""

    number: int
    author: str
    title: str
    body: str
    labels: list[str]
    is_open: bool = True
    is_pull: bool = False
    notes: list[Note] = field(default_factory=list)


@dataclass
class Pull:
    """A pull request, merged as `made` into `branch`, or open."""

    number: int
    head: str
    made: str | None
    branch: str = "main"


@dataclass
class Run:
    """A workflow run or pipeline with its kept files: by topology, by name."""

    identity: int
    pull: int
    head: str
    event: str
    kept: Mapping[str, Mapping[str, bytes]]
    is_expired: bool = False
    project: int = 42


@dataclass
class Fault:
    """What happens once to the next request of a method whose path ends so: it may be carried out nevertheless."""

    method: str
    end: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    is_carried_out: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """What a route gets: what stood in its path, the query, the body, and who asks."""

    parts: tuple[str, ...]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    user: str


@dataclass(frozen=True)
class Listed:
    """An answer that comes in pages, inside an object where there is a key."""

    items: Sequence[Any]
    key: str | None = None


@dataclass(frozen=True)
class Elsewhere:
    """An answer that points into the store."""

    name: str


Routes = Sequence[tuple[str, str, Callable[[Request], Any]]]


class Server:
    """An HTTP server on the loopback, in a thread, that keeps what it was asked. Use it as a context manager."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        serve = self._serve

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                serve(self)

            do_POST = do_PUT = do_PATCH = do_GET

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer((LOCAL, 0), Handler)
        self.address = f"http://{LOCAL}:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _serve(self, http: BaseHTTPRequestHandler) -> None:
        content = http.rfile.read(int(http.headers.get("Content-Length") or 0))
        self.asked.append(Asked(http.command, http.path, dict(http.headers.items())))
        status, headers, answer = self.answer(http.command, http.path, dict(http.headers.items()), content)
        http.send_response(status)
        for key, value in headers.items():
            http.send_header(key, value)
        http.send_header("Content-Length", str(len(answer)))
        http.end_headers()
        http.wfile.write(answer)

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        raise NotImplementedError


class Store(Server):
    """Files by name; like the stores behind forges it refuses requests that bring a token."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        if {key.lower() for key in headers} & {"authorization", "private-token"}:
            return 400, {}, b"a token has no business here"
        return 200, {}, self.files[path.strip("/")]


class ForgeDouble(Server):
    """What both forges have in common: contents, tokens, pages, faults.

    Attributes:
        tokens: login by token.
        readers: tokens that may read alone.
    """

    bot = "bot"
    token = "token-of-the-bot"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self.tokens = {self.token: self.bot}
        self.readers: set[str] = set()
        self.faults: list[Fault] = []
        self.notes: dict[int, list[Note]] = {}
        self.issues: list[Issue] = []
        self.pulls: list[Pull] = []
        self.runs: list[Run] = []
        self.parents: dict[str, list[str]] = {}
        self._identity = 100

    def new_identity(self) -> int:
        self._identity += 1
        return self._identity

    def note(self, pull: int, author: str, body: str) -> Note:
        made = Note(self.new_identity(), author, body)
        self.notes.setdefault(pull, []).append(made)
        return made

    def issue(self, number: int) -> Issue:
        for one in self.issues:
            if one.number == number:
                return one
        raise Wrong(404, "no such issue")

    def new_issue(self, author: str, title: str, body: str, labels: Sequence[str]) -> Issue:
        made = Issue(self.new_identity(), author, title, body, list(labels))
        self.issues.append(made)
        return made

    def pulls_of(self, commit: str) -> list[Pull]:
        """Return all pull requests that contain a commit, the one whose merge made it last."""
        return sorted(self.pulls, key=lambda one: one.made == commit)

    def written(self) -> list[Asked]:
        return [one for one in self.asked if one.method != "GET"]

    def variables(self) -> dict[str, str]:
        """Return what a job of this forge has in its environment."""
        raise NotImplementedError

    def routes(self) -> Routes:
        raise NotImplementedError

    def told_token(self, headers: Mapping[str, str]) -> str | None:
        raise NotImplementedError

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        parts = urlsplit(path)
        fault = next((one for one in self.faults if one.method == method and parts.path.endswith(one.end)), None)
        if fault is not None:
            self.faults.remove(fault)
            if fault.is_carried_out:
                self._carried_out(method, path, headers, content)
            return fault.status, fault.headers, b'{"message": "a fault"}'
        try:
            found = self._carried_out(method, path, headers, content)
        except Wrong as error:
            return error.status, {}, json.dumps({"message": str(error)}).encode()
        if isinstance(found, Elsewhere):
            return 302, {"Location": f"{self._store.address}/{found.name}"}, b""
        if isinstance(found, bytes):
            return 200, {}, found
        told, paged = self._page(found, path) if isinstance(found, Listed) else (found, {})
        return (201 if method == "POST" else 200), paged, json.dumps(told).encode()

    def _carried_out(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Any:
        token = self.told_token(headers)
        if token not in self.tokens:
            raise Wrong(401, "Bad credentials")
        if method != "GET" and token in self.readers:
            raise Wrong(403, "Resource not accessible")
        parts = urlsplit(path)
        for wanted, pattern, route in self.routes():
            found = re.fullmatch(pattern, parts.path)
            if found and wanted == method:
                query = dict(parse_qsl(parts.query))
                body = json.loads(content) if content else {}
                return route(Request(found.groups(), query, body, self.tokens[token]))
        raise Wrong(404, f"no {method} {parts.path}")

    def _page(self, listed: Listed, path: str) -> tuple[Any, Mapping[str, str]]:
        query = dict(parse_qsl(urlsplit(path).query))
        page = int(query.get("page", "1"))
        items = listed.items[(page - 1) * PAGE : page * PAGE]
        # The address leads nowhere: who follows it instead of counting pages sends its token to strangers.
        link = '<http://192.0.2.1/elsewhere?page=2>; rel="next", <http://192.0.2.1/>; rel="last"'
        told = {listed.key: items, "total_count": len(listed.items)} if listed.key else items
        return told, {"Link": link} if page * PAGE < len(listed.items) else {}

    def put(self, name: str, content: bytes) -> Elsewhere:
        self._store.files[name] = content
        return Elsewhere(name)
