"""Calls of confluent-kafka end in the house's errors, whatever the library raises.

Its clients raise `KafkaException`; a fatal error of a producer is raised by whatever is called next, inside a callback
as the cause of a `SystemError`; waiting for a future within a limit ends in a `TimeoutError`. A test of the house holds
that each call is made within `ours`, or where its `KafkaException` is caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from reconciler.model.base.errors import AnabranchError, EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import is_refusal, no_connection, refused, unreachable

if TYPE_CHECKING:
    from reconciler.state.confluent.clients import Reports

RAISED = (KafkaException, SystemError, TimeoutError)
"""What a call can raise that is no fault of this program; `said` takes it apart."""

SILENT = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)
"""Codes that say that no answer came."""


def said(error: BaseException) -> KafkaError:
    """Return what the library said by one of `RAISED`; a `SystemError` that it did not cause is raised again."""
    cause = error if isinstance(error, KafkaException) else error.__cause__
    if isinstance(cause, KafkaException):
        found: KafkaError = cause.args[0]
        return found
    if isinstance(error, TimeoutError):
        return KafkaError(KafkaError._TIMED_OUT, "no answer came in time")
    raise error


@contextmanager
def ours(cluster: Cluster, resource: str, operation: str = "READ", reports: Reports | None = None) -> Iterator[None]:
    """Have what a client raises within this block end in one of our errors.

    Args:
        cluster: that is asked.
        resource: what it is asked about, as `topic orders`.
        operation: what an ACL would have to allow, by Kafka's name.
        reports: what the client tells of its connections.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: AB313, it is refused; or what `faults.no_connection` returns.
    """
    try:
        yield
    except RAISED as error:
        raise failure(cluster, said(error), resource, operation, reports) from None


def failure(
    cluster: Cluster, error: KafkaError, resource: str, operation: str, reports: Reports | None = None
) -> AnabranchError:
    """Return our error for one of the library's; arguments are those of `ours`."""
    if is_refusal(error):
        return EnvironmentFault(refused(cluster, operation, resource))
    return no_connection(cluster, error, tuple(reports.errors) if reports is not None else ())


def no_answer(cluster: Cluster, what: str, reports: Reports) -> AnabranchError:
    """Return the error that something did not happen in time; where the client has told why, that.

    Args:
        cluster: that did not answer.
        what: did not happen.
        reports: what the client tells of its connections.
    """
    if reports.errors:
        return no_connection(cluster, reports.errors[-1], tuple(reports.errors))
    return unreachable(cluster, what)
