"""Declared data centres become values of the model, with checks of Spark's settings that the schema cannot express.

The loader calls it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from reconciler.declare.checks import deployments
from reconciler.declare.checks.lookup import lookup
from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.model.declared.datacenter import DataCenter, Spark

# What must be as it is, and why.
_OURS = {
    "spark.master": "it is `master` beside `conf`",
    "spark.app.name": "it identifies processes",
    "spark.submit.deployMode": "the driver is `replicate` itself",
    "spark.speculation": "a task that ran twice would be two owners of its partitions",
    "spark.dynamicAllocation.enabled": "all tasks of all flows run at once, all the time",
    "spark.task.cpus": "a task has one slot",
    "spark.python.use.daemon": "a task that stands still could not be ended",
    "spark.remote": "the driver is `replicate` itself",
    "spark.api.mode": "the driver is `replicate` itself",
}
_SECRET = re.compile(r"secret|passw|token|credential|private|(access|account)\.?key", re.IGNORECASE)


def build(name: str, place: SourcePlace) -> DataCenter:
    """Return the data centre that the mapping at `place` declares; it has passed the schema."""
    fields = cast("dict[str, Any]", place.value)
    spark = fields.get("spark") or {}
    conf = tuple((key, _text(value)) for key, value in (spark.get("conf") or {}).items())
    wave = fields.get("wave")
    master = lookup(place / "spark" / "master") if "master" in spark else None
    deployment = deployments.build(place / "deploy")
    return DataCenter(name, Spark(master, conf), None if wave is None else int(wave), deployment)


def check(place: SourcePlace) -> Iterator[Located]:
    """Yield what is wrong with a data centre that has passed the schema."""
    yield from deployments.check(place / "deploy")
    conf = place / "spark" / "conf"
    for key in conf.value if isinstance(conf.value, dict) else ():
        if key in _OURS:
            message = f"{key} cannot be chosen: {_OURS[key]}"
            yield (conf / key).problem(codes.WRONG_VALUE, message, "remove it", at_key=True)
        elif _SECRET.search(key) and not key.endswith(".enabled"):
            message = f"expected no secrets under conf; found {key}"
            remedy = "keep it in the spark-defaults.conf of the user that runs `replicate`"
            yield (conf / key).problem(codes.BAD_REFERENCE, message, remedy, at_key=True)


def warnings(datacenters: Mapping[str, SourcePlace], used: Collection[str]) -> Iterator[Located]:
    """Yield data centres in which no cluster stands.

    Args:
        datacenters: every declared one by name.
        used: those that clusters stand in.
    """
    for name, place in datacenters.items():
        if name not in used:
            remedy = "give a cluster this datacenter, or remove it"
            yield place.problem(codes.UNUSED_DATACENTER, f"no cluster stands in {name}", remedy, at_key=True)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
