"""Turns what confluent-kafka raises into `AnabranchError`s.

Its clients raise `KafkaException`; a fatal error of a producer is raised by whatever is called next, inside a callback
as the cause of a `SystemError`; waiting for a future within a limit ends in a `TimeoutError`. A test of the
source checks that each call stands within `ours`, or where its `KafkaException` is caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from reconciler.model.base.errors import AnabranchError, EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import UNANSWERED, is_refusal, no_connection, refused, unreachable

if TYPE_CHECKING:
    from reconciler.state.confluent.clients import Reports

RAISED = (KafkaException, SystemError, TimeoutError)
"""Exceptions of a call because of the cluster; `cause_of` returns the `KafkaError` in one."""

SILENT = UNANSWERED | {KafkaError._MSG_TIMED_OUT, KafkaError.BROKER_NOT_AVAILABLE}
"""Codes for a request, or a record, without an answer."""


def cause_of(error: BaseException) -> KafkaError:
    """Return the `KafkaError` in one of `RAISED`; raise a `SystemError` again that has none."""
    cause = error if isinstance(error, KafkaException) else error.__cause__
    if isinstance(cause, KafkaException):
        found: KafkaError = cause.args[0]
        return found
    if isinstance(error, TimeoutError):
        return KafkaError(KafkaError._TIMED_OUT, "no answer came in time")
    raise error


@contextmanager
def ours(cluster: Cluster, resource: str, operation: str = "READ", reports: Reports | None = None) -> Iterator[None]:
    """Turn what a client raises within this block into an `AnabranchError`.

    Args:
        cluster: which one.
        resource: of the request, as `topic orders`.
        operation: that an ACL must allow, by Kafka's name.
        reports: connection errors of the client.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: AB313, it is refused; or what `faults.no_connection` returns.
    """
    try:
        yield
    except RAISED as error:
        raise failure(cluster, cause_of(error), resource, operation, reports) from None


def failure(
    cluster: Cluster, error: KafkaError, resource: str, operation: str, reports: Reports | None = None
) -> AnabranchError:
    """Return the error for one of the library's; arguments are those of `ours`."""
    if is_refusal(error):
        return EnvironmentFault(refused(cluster, operation, resource))
    return no_connection(cluster, error, tuple(reports.errors) if reports is not None else ())


def no_answer(cluster: Cluster, what: str, reports: Reports) -> AnabranchError:
    """Return the error that something did not happen in time, with the cause if the client has reported one.

    Args:
        cluster: that did not answer.
        what: did not happen.
        reports: connection errors of the client.
    """
    if reports.errors:
        return no_connection(cluster, reports.errors[-1], tuple(reports.errors))
    return unreachable(cluster, what)
