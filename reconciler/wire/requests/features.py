"""Which features a cluster has brought into force (KIP-584); nothing is written."""

from __future__ import annotations

from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.library import ApiVersionsRequest
from reconciler.wire.protocol.values import BrokerError
from reconciler.wire.requests.client import Wire

_WITH_FEATURES = 3


async def metadata_version(wire: Wire) -> int:
    """Return the level of the cluster's `metadata.version`, which a rolling upgrade raises last; 0 before 3.0.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused.
    """
    asked = ApiVersionsRequest(
        client_software_name="anabranch",
        client_software_version="0",
        min_version=_WITH_FEATURES,
        max_version=_WITH_FEATURES,
    )
    try:
        answer = await wire.ask(asked, None)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            return 0
        raise
    if answer.error_code:
        raise BrokerError(answer.error_code)
    levels = {one.name: int(one.max_version_level) for one in answer.finalized_features or ()}
    return levels.get("metadata.version", 0)
