"""Logging in with Kerberos where its package is missing; with it, the contract tests ask a real realm."""

from __future__ import annotations

import sys

import pytest
from kafka.net.sasl import get_sasl_mechanism

from reconciler.model.connection.security import Kerberos, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.connection import NotLetInError
from reconciler.wire.net.kerberos import DECLARED, KerberosLogin


def test_the_library_logs_in_as_whom_the_cluster_declares() -> None:
    assert get_sasl_mechanism("GSSAPI") is KerberosLogin


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    security = Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("mirror@A.B"))
    cluster = Cluster("east", ("b1:9092",), security=security)
    with pytest.raises(NotLetInError, match="the package gssapi is missing") as told:
        KerberosLogin(host="b1", **{DECLARED: cluster})
    assert f"{cluster.where}: principal mirror@A.B cannot log in" in str(told.value)
