"""One explicit Kafka provider per cluster, with every field set.

A field that is not set falls back to a `KAFKA_*` or `AWS_*` variable of the environment, and TLS is on by default: with
two clusters in one program either would quietly point a provider at the wrong cluster, or use the wrong password.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kafka as kafka

from reconciler.model.cluster import Cluster

TIMEOUT_SECONDS = 120
PROTOCOL_VERSION = "2.7.0"
"""What the provider speaks by default; every broker from 2.7 to 4.x understands it."""

DEPRECATED = frozenset({"ca_cert_file", "client_cert_file", "client_key_file"})
"""Fields that cannot be set without a warning. They count only where TLS is on and their successor is empty."""

_UNSET: dict[str, Any] = {
    "ca_cert": "",
    "client_cert": "",
    "client_key": "",
    "client_key_passphrase": "",
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
    "sasl_oauth_scopes": [],
    "sasl_token_url": "",
}


def provider_for(cluster: Cluster) -> kafka.Provider:
    """Declare the provider of a cluster, its password as a Pulumi secret.

    Raises:
        EnvironmentFault: AB304, the password cannot be resolved.
    """
    security = cluster.security
    password = security.password.resolve(cluster.where) if security.password else ""
    return kafka.Provider(
        cluster.alias,
        bootstrap_servers=list(cluster.bootstrap),
        kafka_version=PROTOCOL_VERSION,
        timeout=TIMEOUT_SECONDS,
        tls_enabled=False,
        skip_tls_verify=False,
        sasl_mechanism="plain",
        sasl_username=security.username or "",
        sasl_password=pulumi.Output.secret(password),
        **_UNSET,
    )
