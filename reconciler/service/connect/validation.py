"""What is wrong with the configuration of a connector, setting by setting, before anything is kept of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from reconciler.convert.connect import CLASS, Connector
from reconciler.convert.conversion import Converted, convert_worker
from reconciler.convert.plugins import COPYING, PLUGINS, plugin_of
from reconciler.convert.settings import Setting, Settings
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.recorded.connector import ConnectorRecord

_PLACE = re.compile(r"^connector (?P<name>.*?) \((?P<key>[^()]*)\)$")
_TASKS = "tasks.max"


def of_record(record: ConnectorRecord) -> Connector:
    """Return a connector as it is converted."""
    where = f"connector {record.name}"
    settings = Settings(Setting(key, value.strip(), where) for key, value in record.config.items())
    return Connector(record.name, settings, where, record.state == "STOPPED")


def converted(records: Iterable[ConnectorRecord], worker: Settings, name: str) -> Converted | None:
    """Return the topology that connectors declare together; None where none of them copies.

    Args:
        records: the connectors.
        worker: settings of the worker's file.
        name: of the topology.

    Raises:
        DeclaredInputError: as of `convert_worker`.
    """
    connectors = [of_record(one) for one in records]
    if not any(one.kind in COPYING for one in connectors):
        return None
    # What was asked for of the worker's settings is noted in them.
    return convert_worker(connectors, Settings(worker), name)


def errors_of(
    record: ConnectorRecord, others: Iterable[ConnectorRecord], worker: Settings, name: str
) -> dict[str, list[str]]:
    """Return what is wrong with a connector, by setting, in Connect's words where it has some for it.

    Args:
        record: the connector.
        others: those beside it.
        worker: settings of the worker's file.
        name: of the topology.
    """
    errors = errors_of_itself(record)
    if not errors:
        try:
            converted([*others, record], worker, name)
        except DeclaredInputError as error:
            return by_setting(error, record.name)
    return errors


def errors_of_itself(record: ConnectorRecord) -> dict[str, list[str]]:
    """Return what is wrong with a connector whatever there is beside it, by setting, in Connect's words."""
    config = record.config
    if CLASS not in config:
        return {CLASS: [f"Connector config contains no connector type: {CLASS} is missing"]}
    plugin = plugin_of(config[CLASS].strip())
    if plugin is None:
        there = ", ".join(one.full_name for one in PLUGINS)
        message = f"Failed to find any class that implements Connector and which name matches {config[CLASS]}"
        return {CLASS: [f"{message}, available connectors are: {there}"]}
    errors: dict[str, list[str]] = {}
    for setting in plugin.settings:
        if setting.is_required and setting.name not in config:
            message = f'Missing required configuration "{setting.name}" which has no default value.'
            errors.setdefault(setting.name, []).append(message)
    if not record.name:
        errors["name"] = ["Invalid value  for configuration name: String may not be empty"]
    if tasks := _wrong_tasks(config.get(_TASKS, "1")):
        errors[_TASKS] = [f"Invalid value {config[_TASKS]} for configuration {_TASKS}: {tasks}"]
    return errors


def by_setting(error: DeclaredInputError, name: str) -> dict[str, list[str]]:
    """Return the problems of an error, which are about a connector of this name, by setting."""
    errors: dict[str, list[str]] = {}
    for problem in error.problems:
        key, text = _placed(problem, name)
        errors.setdefault(key, []).append(text)
    return errors


def in_words(errors: Mapping[str, Sequence[str]]) -> str:
    """Return what is wrong as the message of an answer."""
    texts = [text for each in errors.values() for text in each]
    return "\n".join(
        [
            f"Connector configuration is invalid and contains the following {len(texts)} error(s):",
            *texts,
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
        ]
    )


def _wrong_tasks(written: str) -> str:
    try:
        return "" if int(written) >= 1 else "Value must be at least 1"
    except ValueError:
        return "Not a number of type INT"


def _placed(problem: Problem, name: str) -> tuple[str, str]:
    """Return the setting that a problem is about, and its text; without values, which may be secrets."""
    found = _PLACE.match(problem.where)
    text = (
        f"{problem.message} — {problem.remedy} [{problem.code}]"
        if problem.remedy
        else f"{problem.message} [{problem.code}]"
    )
    if found is None or found["name"] != name:
        return CLASS, f"{problem.where}: {text}"
    return found["key"], f"Invalid value for configuration {found['key']}: {text}"
