"""Logs in with Kerberos (SASL GSSAPI), each cluster as the principal that it declares.

`manager` registers it with the library, whose own login uses the principal of the process. The steps stay the
library's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from reconciler.model.base.errors import AnabranchError
from reconciler.model.connection.security import Kerberos
from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.connection import NotLetInError

DECLARED = "anabranch_cluster"
"""Under which of a connection's settings its cluster stands; the library hands them to the mechanism."""

_NO_LIBRARY = "the package gssapi is missing, install anabranch with its extra `kerberos` wherever tasks run"


class KerberosLogin(SaslMechanismGSSAPI):
    """One login, with tickets that are fetched with the declared keytab, or else with those of the environment.

    Tickets live in this process's memory, a cache for each keytab; the Kerberos library renews them in time.
    A renewal takes milliseconds, in which the loop stands still.

    Args:
        settings: those of the connection, with the broker's `host` and the cluster under `DECLARED`.

    Raises:
        NotLetInError: no ticket can be had, or the package gssapi is not installed.
    """

    def __init__(self, **settings: Any) -> None:
        cluster: Cluster = settings[DECLARED]
        kerberos = cluster.security.kerberos
        assert kerberos is not None, "the loader refuses GSSAPI without kerberos"
        host = str(settings["host"])
        login = f"{cluster.where}: {cluster.user}"
        try:
            gssapi = import_module("gssapi")
        except (ImportError, OSError):
            message = f"{login} cannot log in with Kerberos: {_NO_LIBRARY}"
            raise NotLetInError(message) from None
        self._is_done = self._is_authenticated = False
        try:
            # The principal to act as is the one that logs in.
            self.auth_id = kerberos.principal_at(cluster.where)
            if kerberos.keytab is not None:
                kerberos.keytab.check(cluster.where)
            broker = gssapi.Name(f"{kerberos.service}@{host}", gssapi.NameType.hostbased_service)
            self._client_ctx = gssapi.SecurityContext(
                name=broker.canonicalize(gssapi.MechType.kerberos),
                creds=_credentials(gssapi, kerberos, self.auth_id),
                mech=gssapi.MechType.kerberos,
                usage="initiate",
            )
            self._next_token = self._client_ctx.step(None)
        except gssapi.exceptions.GSSError as error:
            message = f"{login} gets no ticket for {kerberos.service}/{host}: {_reason(error)}; {_remedy(kerberos)}"
            raise NotLetInError(message) from None
        except AnabranchError as error:
            raise NotLetInError(str(error)) from None


def _credentials(gssapi: Any, kerberos: Kerberos, principal: str) -> Any:
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    store = {}
    if kerberos.keytab is not None:
        # The library fetches and renews tickets from a client's keytab by itself (MIT krb5, "credential store").
        store = {"client_keytab": kerberos.keytab.name, "ccache": f"MEMORY:{kerberos.keytab.name}:{principal}"}
    return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store or None)


def _reason(error: Any) -> str:
    """Return the message of the Kerberos library: the particular part if there is one, else the general one."""
    return str(error.get_all_statuses(error.min_code, False)[-1] if error.min_code else error)


def _remedy(kerberos: Kerberos) -> str:
    if kerberos.keytab is None:
        return "check security.kerberos, and what `klist` shows there, or declare a keytab"
    return f"check security.kerberos, and whose keys `klist -k {kerberos.keytab.name}` shows"


def register() -> None:
    """Have the library log in so."""
    register_sasl_mechanism("GSSAPI", KerberosLogin, overwrite=True)
