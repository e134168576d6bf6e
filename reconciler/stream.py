"""A flow's ledger as a streaming DataFrame, for PySpark programs of users.

`replicate` needs none of this. A query on the DataFrame replicates the flow, in the program's own Spark session and
with its own sinks: the rows are the account of what was copied, and copying goes on for as long as the query does.
Stopping or killing it at any moment does no harm, since positions are read from the target's log.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from reconciler.model.base.errors import AnabranchError, Refused
from reconciler.model.base.installed import need
from reconciler.model.base.text import shown
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.spec import DEFAULT_ROUND, FlowSpec
from reconciler.replicator.driver.driver import new_run
from reconciler.replicator.driver.preparation import prepare
from reconciler.replicator.driver.refresh import Refresh
from reconciler.replicator.spark.source import ledger_frame
from reconciler.state import control
from reconciler.state.declarations import Declarations
from reconciler.state.journals.home import home_of

_LOG = logging.getLogger(__name__)


def ledger(spark: SparkSession, topology: Topology, flow: str, round_seconds: float = DEFAULT_ROUND) -> DataFrame:
    """Return the ledger of a flow; a streaming query on it replicates the flow, and yields rows at each round's end.

    The remote topics must have been made by `apply`. Problems are logged by the logger `anabranch`.

    Args:
        spark: the session. It needs a free slot for each task of the flow, and workers (`PYSPARK_PYTHON`) that have
            this package; `local[n]` should be `local[n,8]`, or the first worker that dies ends the query.
        topology: as `reconciler.declare.load` returns it.
        flow: name of one of its flows.
        round_seconds: how long a round lasts, and with it how soon its rows come.

    Raises:
        ValueError: the topology has no such flow.
        Refused: AB411, another declaration is in force at the target.
        EnvironmentFault: AB327, the extra `stream` is not installed.
        AnabranchError: the target does not answer, refuses us, or cannot hold identical offsets.
    """
    need("stream")
    found = next((one for one in topology.flows if one.name == flow), None)
    if found is None:
        message = f"no flow {flow} in {topology.name}; there are {', '.join(one.name for one in topology.flows)}"
        raise ValueError(message)
    home = home_of(topology.clusters[found.target], topology.name)
    spec = FlowSpec.compile(topology, found, new_run(), round_seconds, home)
    declarations = Declarations(spec.target, spec.topology)
    objection = declarations.current().objection(spec.digest, spec.target.where)
    declarations.close()
    if objection is not None:
        raise Refused(objection)
    prepare(spec.target, spec.topology, [found], _warn)
    folder = tempfile.TemporaryDirectory(prefix="anabranch-")
    shares = Path(folder.name) / "shares.json"
    refresh = Refresh(spec, None, warn=_warn, note=_note, file=shares)
    refresh.look()
    refresh.start()
    atexit.register(_end, refresh, spec, folder)
    return ledger_frame(spark, spec, shares)


def _warn(text: str) -> None:
    _LOG.warning("%s", shown(text))


def _note(text: str) -> None:
    _LOG.info("%s", shown(text))


def _end(refresh: Refresh, spec: FlowSpec, folder: tempfile.TemporaryDirectory[str]) -> None:
    """Withdraw the run's commands when the program ends."""
    refresh.end()
    folder.cleanup()
    # A target that is gone keeps it for a day at most.
    with contextlib.suppress(AnabranchError):
        control.withdraw(spec.target, [spec.seal])
