"""Problems of TLS connections, in words: messages of the clients lack the cause, or there are none.

`faults` uses it after a failed connection of librdkafka, `wire.net` after one of its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.connection.references import Reference
from reconciler.model.declared.cluster import Cluster

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 1.0
# With TLS 1.3 a broker refuses a certificate only after the handshake.
_SILENCE_SECONDS = 0.3
_ADDRESSES = 3

# OpenSSL's X509_V_ERR_… (`man x509_verify`).
_NOT_YET, _EXPIRED = 9, 10
_OTHER_NAME = (62, 64)
_OTHER_CERTIFICATE = "set security.certificate and security.key to what an authority has signed that the broker trusts"


def examine(cluster: Cluster) -> EnvironmentFault | None:
    """Make a TLS handshake with a broker; return why it fails, or that the other protocol is expected; else None.

    Nothing is sent but the handshake.
    """
    security = cluster.security
    for host, port in _addresses(cluster):
        try:
            made = context(cluster) if security.has_tls else _trusting()
        except AnabranchError:
            # A reference in `security` cannot be resolved: the caller's own connection reports that.
            return None
        except (OSError, ValueError) as error:
            return EnvironmentFault(unusable(cluster, error))
        try:
            _shake_hands(host, port, made)
        except ssl.SSLError as error:
            if security.has_tls:
                return EnvironmentFault(problem(cluster, f"{host}:{port}", error))
            # An alert is TLS, too.
            return _other_protocol(cluster, f"{host}:{port}") if is_alert(error) else None
        except ConnectionRefusedError:
            continue
        except ConnectionError as error:
            return EnvironmentFault(problem(cluster, f"{host}:{port}", error)) if security.has_tls else None
        except OSError:
            continue
        return None if security.has_tls else _other_protocol(cluster, f"{host}:{port}")
    return None


def unusable(cluster: Cluster, error: Exception) -> Problem:
    """Return the problem that certificates and keys cannot be used as they are declared."""
    message = f"{cluster.user} cannot connect with what `security` names: {_reason(error)}"
    remedy = "check that the files are PEM, that key and certificate belong together, and the key's password"
    if cluster.security.ciphers:
        remedy += "; and that ciphers are suites of TLS 1.2, as `openssl ciphers` calls them"
    return Problem("AB306", cluster.where, message, remedy)


def closed(cluster: Cluster, address: str) -> Problem:
    """Return what it means that a broker ends a connection between the TLS handshake and its first answer."""
    shown = f"certificate {cluster.security.certificate.shown}" if cluster.security.certificate else "no certificate"
    message = f"{cluster.user} cannot connect to {address} with {shown}: it is closed after the TLS handshake"
    return Problem("AB318", cluster.where, message, _OTHER_CERTIFICATE)


def problem(cluster: Cluster, address: str, error: OSError) -> Problem:
    """Return what a failed handshake with `address` means, in words, with a remedy."""
    security = cluster.security
    subject = f"{cluster.user} cannot connect to {address}"
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"{subject}: the broker's certificate is not accepted: {error.verify_message}"
        if error.verify_code in (_EXPIRED, _NOT_YET):
            remedy = "renew the broker's certificate, and see whether the clocks are right"
        elif error.verify_code in _OTHER_NAME:
            remedy = (
                "name brokers in bootstrap and advertised.listeners as their certificates do, or know what it means to"
            )
            remedy += " set security.verify-hostname: false"
        else:
            trusted = f"{security.ca} does not have it" if security.ca else "it is none of the system's"
            remedy = f"set security.ca to a PEM file with the authority that signed it: {trusted}"
        return Problem("AB318", cluster.where, message, remedy)
    if is_alert(error):
        shown = f"certificate {security.certificate.shown}" if security.certificate else "no certificate"
        message = f"{subject} with {shown}: it ends the TLS handshake with {_reason(error)}"
        chosen = (security.newest_tls_alone or security.ciphers) and _is_of_versions(error)
        remedy = "leave out security.tls-protocols and ciphers, or name what the broker's listener has"
        return Problem("AB318", cluster.where, message, remedy if chosen else _OTHER_CERTIFICATE)
    message = f"{subject} with TLS: it does not answer as a TLS server does ({_reason(error)})"
    remedy = f"name the port of a TLS listener, or set security.protocol to {_without_tls(cluster)}"
    return Problem("AB319", cluster.where, message, remedy)


def plaintext_refused(cluster: Cluster, address: str) -> Problem:
    """Return the problem that a client without TLS has connected to a TLS port."""
    message = f"{cluster.user} cannot connect to {address} with {cluster.security.protocol}: it uses TLS"
    protocol = "SASL_SSL" if cluster.security.has_sasl else "SSL"
    return Problem("AB319", cluster.where, message, f"set security.protocol to {protocol}, or name another port")


def no_broker(cluster: Cluster, address: str, found: str) -> Problem:
    """Return the problem that no Kafka broker listens at an address; `found` describes its answer."""
    message = f"{cluster.user} cannot connect to {address} with {cluster.security.protocol}: {found}"
    remedy = "name the port of a Kafka listener in bootstrap, and in the advertised.listeners of brokers"
    return Problem("AB319", cluster.where, message, remedy)


def _other_protocol(cluster: Cluster, address: str) -> EnvironmentFault:
    return EnvironmentFault(plaintext_refused(cluster, address))


def _without_tls(cluster: Cluster) -> str:
    return "SASL_PLAINTEXT" if cluster.security.has_sasl else "PLAINTEXT"


def _addresses(cluster: Cluster) -> Iterator[tuple[str, int]]:
    for address in cluster.addresses[:_ADDRESSES]:
        host, _, port = address.rpartition(":")
        yield host.strip("[]"), int(port)


def context(cluster: Cluster) -> ssl.SSLContext:
    """Return what connections to a cluster are made with, its certificates and keys as they are by now.

    Raises:
        EnvironmentFault: AB304, a reference cannot be resolved.
        OSError, ValueError: what it leads to cannot be used: see `unusable`.
    """
    security, where = cluster.security, cluster.where
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3 if security.newest_tls_alone else ssl.TLSVersion.TLSv1_2
    made.check_hostname = security.verify_hostname
    if security.ciphers:
        made.set_ciphers(":".join(security.ciphers))
    if security.ca is None:
        made.load_default_certs()
    elif security.ca.path is not None:
        security.ca.check(where)
        made.load_verify_locations(security.ca.path)
    else:
        made.load_verify_locations(cadata=security.ca.resolve(where))
    if security.certificate is not None:
        password = None if security.key_password is None else security.key_password.resolve(where)
        with _as_file(security.certificate, where) as certificate, _as_file(security.key, where) as key:
            made.load_cert_chain(certificate or "", key, password)
    return made


@contextlib.contextmanager
def _as_file(reference: Reference | None, where: str) -> Iterator[str | None]:
    """Yield a path that holds what a reference leads to, as Python reads certificates from files alone."""
    if reference is None or reference.path is not None:
        if reference is not None:
            reference.check(where)
        yield None if reference is None else reference.path
        return
    text = reference.resolve(where).encode()
    with contextlib.ExitStack() as stack:
        if hasattr(os, "memfd_create"):
            # In memory alone: a secret from a variable is never written to a file system.
            descriptor = os.memfd_create("anabranch")
            stack.callback(os.close, descriptor)
            os.write(descriptor, text)
            yield f"/proc/self/fd/{descriptor}"
        else:
            file = stack.enter_context(tempfile.NamedTemporaryFile())
            file.write(text)
            file.flush()
            yield file.name


def _trusting() -> ssl.SSLContext:
    """Return a context that accepts any certificate, to find out whether a port uses TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _shake_hands(host: str, port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as plain:
        plain.settimeout(_ANSWER_SECONDS)
        with context.wrap_socket(plain, server_hostname=host) as secured:
            secured.settimeout(_SILENCE_SECONDS)
            with contextlib.suppress(TimeoutError):
                secured.recv(1)


def is_alert(error: OSError | None) -> bool:
    """Return whether an error is a TLS alert of the peer."""
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def _is_of_versions(error: OSError) -> bool:
    """Return whether a peer's alert is about the TLS version or the ciphers."""
    return any(word in (getattr(error, "reason", None) or "") for word in ("PROTOCOL_VERSION", "HANDSHAKE_FAILURE"))


def _reason(error: Exception) -> str:
    # Errors of Python's own, as of a context, have no reason.
    if isinstance(error, ssl.SSLError) and (reason := getattr(error, "reason", None)):
        return str(reason).lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
