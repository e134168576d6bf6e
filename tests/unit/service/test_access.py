"""Tokens of the service: how they are written, what is refused, and that none is ever shown."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from pathlib import Path

import pytest

from reconciler.metrics.server import ListenAddress
from reconciler.model.base.errors import AnabranchError
from reconciler.service.access import Caller, tokens_of
from reconciler.service.audit import AuditLog
from reconciler.service.server import TlsFiles, check_exposure, listening

SECRET = "0123456789abcdef-of-tests"
LOCAL = Caller("local", "read")


def test_a_token_has_a_role_and_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPS", SECRET)
    (tmp_path / "token").write_text(f"{SECRET}2\n")
    tokens = tokens_of(["operate:ops=env:OPS", f"read=file:{tmp_path}/token"], LOCAL)
    assert tokens.caller(f"Bearer {SECRET}") == Caller("ops", "operate")
    assert tokens.caller(f"bearer {SECRET}2") == Caller("read", "read")
    assert [tokens.caller(one) for one in (None, "", "Bearer ", f"Bearer {SECRET}3", SECRET)] == [None] * 5
    assert tokens_of([], LOCAL).caller(None) == LOCAL


@pytest.mark.parametrize(
    "option",
    [SECRET, f"operate={SECRET}", f"admin=env:{SECRET}", f"read:a b=env:{SECRET}", "=", "read:=env:OPS",
     "read=env:UNSET", "read=env:SHORT", "read=file:/nowhere/token"],
)  # fmt: skip
def test_what_is_no_token_is_refused_and_not_shown(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "hunter2")
    with pytest.raises(AnabranchError, match=r"AB732|AB304") as error:
        tokens_of([option], LOCAL)
    assert SECRET not in str(error.value) and "hunter2" not in str(error.value)


def test_two_callers_with_one_token_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS", SECRET)
    with pytest.raises(AnabranchError, match="AB732"):
        tokens_of(["read=env:OPS", "operate=env:OPS"], LOCAL)


@pytest.mark.parametrize(
    ("host", "has_tls", "has_tokens", "missing"),
    [
        ("127.0.0.1", False, False, None),
        ("::1", False, False, None),
        ("localhost", False, False, None),
        ("0.0.0.0", True, True, None),
        ("0.0.0.0", False, True, "TLS is missing"),
        ("::", True, False, "tokens is missing"),
        ("example.com", False, False, "TLS and tokens are missing"),
    ],
)
def test_others_need_tls_and_a_token(host: str, has_tls: bool, has_tokens: bool, missing: str | None) -> None:
    tls = TlsFiles(Path("cert"), Path("key")) if has_tls else None
    if missing is None:
        check_exposure(ListenAddress(host, 1), tls, has_tokens)
        return
    with pytest.raises(AnabranchError, match="AB739") as error:
        check_exposure(ListenAddress(host, 1), tls, has_tokens)
    assert missing in str(error.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_small_answers_go_out_at_once(host: str) -> None:
    """asyncio sets TCP_NODELAY on accepted sockets only where the listener's protocol is given."""
    with listening(ListenAddress(host, 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_audit_log_that_cannot_be_written_stops_what_is_to_be_done(tmp_path: Path) -> None:
    with pytest.raises(AnabranchError, match="AB734"):
        AuditLog(tmp_path / "no" / "log")
    log = AuditLog(Path("/dev/full"))
    with pytest.raises(AnabranchError, match="AB734"):
        log.write("ops", "pause", "begins", {})
    log.close()


def test_a_line_of_the_audit_log_is_one_line_whatever_is_named(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log")
    log.write("ops", "pause", "begins", {"topics": ["a\nb\x1b[0m"]})
    log.close()
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert "\x1b" not in line and json.loads(line)["topics"] == ["a\nb\x1b[0m"]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_files_of_others_are_as_they_were_published() -> None:
    vendor = Path("reconciler/service/page/vendor")
    listed = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (vendor / "README.md").read_text(), re.MULTILINE))
    found = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in vendor.glob("*.[jc]s*")}
    assert found == listed


def test_the_page_asks_no_other_host_and_makes_no_markup_from_names() -> None:
    page = Path("reconciler/service/page")
    for path in (*page.glob("*.js"), *page.glob("*.html"), *page.glob("*.css")):
        text = path.read_text()
        assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent|dangerously|eval\(|[ \n]style=", text), path
