"""A secret in the wrong place is refused without being repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler import declare
from reconciler.model.base.errors import DeclaredInputError
from tests.unit.declare.declaring import refused, write

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


@pytest.mark.parametrize(
    "text",
    [
        "clusters: {{a: {{bootstrap: 'h:1', password: ab,{}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', sasl.jaas.config: ab,{}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', ssl.my.own: ab,{}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', key_password: ab,{}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', client-secret: {}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', password: {{x: {}}}}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', rack: [{}], token: x}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1', clients: {{admin: {{sasl.password: ab,{}}}}}}}}}\n",
        "clusters: {{a: {{bootstrap: 'u:{}@h:1'}}}}\n",
        "clusters: {{a: {{bootstrap: ['u@{}:1:2']}}}}\n",
        "clusters: {{a: {{bootstrap: ['u:{0}@h:1', 'u:{0}@h:1']}}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1'}}}}\ndefaults: {{password: ab,{}}}\n",
        "clusters: {{a: {{bootstrap: 'h:1'}}}}\nreplication: [{{password: ab,{}}}]\n",
        "clusters: {{a: {{bootstrap: 'h:1'}}}}\npassword: ab\n{}: x\n",
        "clusters: {{a: {{bootstrap: 'h:1'}}}}\npolicy: {{type: class, class: c, options: {{password: [{}]}}}}\n",
    ],
)
def test_no_message_repeats_a_secret_that_stands_elsewhere(tmp_path: Path, text: str) -> None:
    problems = refused(tmp_path, "version: 1\nname: s\n" + text.format(SECRET))
    assert problems
    for problem in problems:
        assert SECRET not in str(problem)


def test_a_cluster_may_be_called_after_secrets(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, "version: 1\nname: s\nclusters: {tokens: {bootstrap: 'h:1', bogus: 1}}\n")
    assert problem.message.endswith("found bogus")


def test_credentials_beside_security_are_told_where_they_belong(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, "version: 1\nname: s\nclusters: {a: {bootstrap: 'h:1', password: 'env:PW'}}\n")
    assert (problem.code, problem.message) == ("AB103", "password is declared elsewhere: by `security` of a cluster")


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
