"""A secret in the wrong place is refused without being repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler import declare
from reconciler.model.errors import DeclaredInputError
from tests.unit.declaring import refused, write

SECRET = "hunter2-Sq7"

PLACES = [
    "password: {}",
    "password: '{}'",
    "password: [{}]",
    "password: {{{}: x}}",
    "password: *{}",
    "password: &{}",
    "password: !{} x",
    "password: !{}!x y",
    "password: '{}",
    "password: ab,{}",
    "password: |\n        {}",
    "password: env:{}",
    "password: file:{}",
    "key-password: {}",
    "certificate: {}",
    "oauth: {}",
    "oauth: {{token: {}}}",
    "keystore: {}",
    "username: [{}]",
    "protocol: {}",
    "mechanism: {}",
    "mechanism: PLAIN, {}",
    "{}: x",
    "{}",
]


@pytest.mark.parametrize("fields", PLACES)
@pytest.mark.parametrize(
    "layout",
    [
        "  a: {{bootstrap: 'b:1', security: {{protocol: SASL_PLAINTEXT, {}}}}}\n",
        "  a:\n    bootstrap: 'b:1'\n    security:\n      protocol: PLAINTEXT\n      {}\n",
    ],
)
def test_no_message_repeats_a_secret(tmp_path: Path, fields: str, layout: str) -> None:
    problems = refused(tmp_path, "version: 1\nname: s\nclusters:\n" + layout.format(fields.format(SECRET)))
    assert problems
    for problem in problems:
        assert SECRET not in str(problem)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secret=st.text(st.sampled_from("QXZ0489é*&!|>%@`'\"#:,{}[]-?~^=<\\"), min_size=8),
    quote=st.sampled_from(["", "'", '"']),
)
@example(secret="x,passwort1", quote="")
@example(secret="*anchored1", quote="")
@example(secret="pass: word1", quote="")
def test_no_password_is_repeated_whatever_it_looks_like(tmp_path: Path, secret: str, quote: str) -> None:
    security = f"{{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: {quote}{secret}{quote}}}"
    text = f"version: 1\nname: s\nclusters:\n  a: {{bootstrap: 'b:1', security: {security}}}\n"
    (path,) = write(tmp_path, text)
    try:
        declare.load([path])
    except DeclaredInputError as error:
        said = str(error).replace(str(path), "")
        pieces = [secret[start : start + 8] for start in range(len(secret) - 7)]
        assert not [piece for piece in pieces if piece in said]
