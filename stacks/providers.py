"""One explicit Kafka provider per cluster, with every field set.

A field that is not set falls back to a `KAFKA_*` or `AWS_*` variable of the environment, and TLS is on by default: with
two clusters in one program either would quietly point a provider at the wrong cluster, or use the wrong password.
"""

from __future__ import annotations

import math
from typing import Any

import pulumi
import pulumi_kafka as kafka

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.connection.references import Reference, settled
from reconciler.model.declared.cluster import Cluster

TIMEOUT_SECONDS = 120
PROTOCOL_VERSION = "2.7.0"
"""What the provider speaks by default; every broker from 2.7 to 4.x understands it."""

DEPRECATED = frozenset({"ca_cert_file", "client_cert_file", "client_key_file"})
"""Fields that cannot be set without a warning. They count only where TLS is on and their successor is empty."""

_PKCS8_ENCRYPTED = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
"""The provider decrypts the older form alone, whose header says `Proc-Type: 4,ENCRYPTED`."""

_MECHANISMS = {"SCRAM-SHA-256": "scram-sha256", "SCRAM-SHA-512": "scram-sha512", "OAUTHBEARER": "oauthbearer"}

_UNSET: dict[str, Any] = {
    "sasl_aws_access_key": "",
    "sasl_aws_container_authorization_token_file": "",
    "sasl_aws_container_credentials_full_uri": "",
    "sasl_aws_creds_debug": False,
    "sasl_aws_external_id": "",
    "sasl_aws_profile": "",
    "sasl_aws_region": "",
    "sasl_aws_role_arn": "",
    "sasl_aws_secret_key": "",
    "sasl_aws_shared_config_files": [],
    "sasl_aws_token": "",
}


def check_login(cluster: Cluster) -> None:
    """Make sure that the provider can log in as a cluster declares.

    Raises:
        EnvironmentFault: AB309 the cluster may not be connected to from here, AB304 the key cannot be had, AB306 it has
            no such login.
    """
    cluster.check_hosts()
    key = cluster.security.key
    if key is not None and _PKCS8_ENCRYPTED in key.resolve(cluster.where):
        message = "the Pulumi provider cannot decrypt a key in this form (PKCS#8, BEGIN ENCRYPTED PRIVATE KEY)"
        remedy = "keep the key without a password where only Anabranch can read it, or use --provisioner direct"
        raise EnvironmentFault(Problem("AB306", cluster.where, message, remedy))
    oauth = cluster.security.oauth
    if oauth is not None and (oauth.token is not None or oauth.token_provider is not None or oauth.extensions):
        message = (
            "the Pulumi provider cannot log in with tokens that are kept or of a token-provider, nor with extensions"
        )
        remedy = "declare token-endpoint, client-id and client-secret, or use --provisioner direct"
        raise EnvironmentFault(Problem("AB306", cluster.where, message, remedy))
    security = cluster.security
    if not security.verify_hostname or security.newest_tls_alone or security.ciphers:
        message = "the Pulumi provider cannot choose ciphers and versions of TLS, nor leave host names alone out"
        raise EnvironmentFault(Problem("AB306", cluster.where, message, "use --provisioner direct"))
    if cluster.security.kerberos is not None:
        message = "the Pulumi provider cannot log in with Kerberos"
        raise EnvironmentFault(Problem("AB306", cluster.where, message, "use --provisioner direct"))


def provider_for(cluster: Cluster) -> kafka.Provider:
    """Declare the provider of a cluster, its secrets as Pulumi secrets.

    Raises:
        EnvironmentFault: AB309 the cluster may not be connected to from here, AB304 a secret cannot be resolved, AB306
            the provider has no such login.
    """
    check_login(cluster)
    security, oauth = cluster.security, cluster.security.oauth
    # An endpoint is asked with what stands for a user elsewhere.
    user = (
        (oauth.client_id and settled(oauth.client_id, cluster.where)) if oauth else security.username_at(cluster.where)
    )
    password = oauth.client_secret if oauth else security.password

    def secret(reference: Reference | None) -> Any:
        return pulumi.Output.secret(reference.resolve(cluster.where)) if reference else ""

    return kafka.Provider(
        cluster.alias,
        bootstrap_servers=list(cluster.addresses),
        kafka_version=PROTOCOL_VERSION,
        timeout=math.ceil(cluster.clients.admin.patience(TIMEOUT_SECONDS)),
        tls_enabled=security.has_tls,
        skip_tls_verify=False,
        ca_cert=security.ca.resolve(cluster.where) if security.ca else "",
        client_cert=security.certificate.resolve(cluster.where) if security.certificate else "",
        client_key=secret(security.key),
        client_key_passphrase=secret(security.key_password),
        sasl_mechanism=_MECHANISMS.get(security.mechanism or "", "plain"),
        sasl_username=user or "",
        sasl_password=secret(password),
        sasl_token_url=next(iter(cluster.token_endpoints), ""),
        sasl_oauth_scopes=settled(oauth.scope or "", cluster.where).split() if oauth else [],
        **_UNSET,
    )
