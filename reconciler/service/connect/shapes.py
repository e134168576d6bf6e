"""The JSON of Kafka Connect's answers; field by field that of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler import __version__
from reconciler.convert.plugins import PLUGINS, Plugin, PluginSetting
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.service.connect.hosting import ConnectorHost, ConnectorView

_GROUP = "Common"


def info(record: ConnectorRecord, view: ConnectorView | None) -> dict[str, Any]:
    """Return a connector with its configuration and the ids of its tasks."""
    tasks = view.tasks if view is not None else ()
    return {
        "name": record.name,
        "config": dict(record.config),
        "tasks": [{"connector": record.name, "task": one.task} for one in tasks],
        "type": "source",
    }


def tasks(record: ConnectorRecord, view: ConnectorView | None) -> list[dict[str, Any]]:
    """Return the tasks of a connector with their configurations."""
    return [
        {
            "id": {"connector": record.name, "task": one.task},
            "config": {**record.config, "task.index": str(one.task)},
        }
        for one in (view.tasks if view is not None else ())
    ]


def status(name: str, view: ConnectorView, worker: str, *, state: str | None = None) -> dict[str, Any]:
    """Return the status of a connector and its tasks.

    Args:
        name: of the connector.
        view: what it does.
        worker: the id of this worker.
        state: what to give for all of them in place of their own.
    """
    return {
        "name": name,
        "connector": _state(state or view.state, worker, view.trace),
        "tasks": [{"id": one.task, **_state(state or one.state, one.run, one.trace)} for one in view.tasks],
        "type": "source",
    }


def task_status(view: ConnectorView, number: int) -> dict[str, Any] | None:
    """Return the status of one task; None where there is none of that number."""
    found = next((one for one in view.tasks if one.task == number), None)
    return None if found is None else {"id": found.task, **_state(found.state, found.run, found.trace)}


def _state(state: str, worker: str, trace: str) -> dict[str, Any]:
    return {"state": state, "worker_id": worker, "version": __version__} | ({"trace": trace} if trace else {})


def expanded(host: ConnectorHost, expand: Sequence[str]) -> dict[str, Any]:
    """Return all connectors with what was asked for: `status`, `info`, or both."""
    found: dict[str, Any] = {}
    for name, record in host.records().items():
        view = host.view(name)
        found[name] = {}
        if "status" in expand and view is not None:
            found[name]["status"] = status(name, view, host.worker_id)
        if "info" in expand:
            found[name]["info"] = info(record, view)
    return found


def plugins() -> list[dict[str, str]]:
    """Return the connectors that are taken."""
    return [{"class": one.full_name, "type": "source", "version": __version__} for one in PLUGINS]


def definitions(plugin: Plugin) -> list[dict[str, Any]]:
    """Return the settings of a connector."""
    return [_definition(one, number) for number, one in enumerate(plugin.settings, 1)]


def validated(
    plugin: Plugin, written: str, config: Mapping[str, str], errors: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the settings of a connector with their values, and what is wrong with them.

    Args:
        plugin: the connector.
        written: its class as the configuration has it.
        config: what was given.
        errors: what is wrong, by setting.
    """
    known = {one.name for one in plugin.settings}
    # What is wrong elsewhere would be lost.
    more = [PluginSetting(name, "STRING") for name in errors if name not in known]
    settings = [*plugin.settings, *more]
    return {
        "name": written,
        "error_count": sum(1 for one in settings if errors.get(one.name)),
        "groups": [_GROUP],
        "configs": [
            {
                "definition": _definition(one, number),
                "value": {
                    "name": one.name,
                    "value": config.get(one.name, one.default),
                    "recommended_values": [],
                    "errors": list(errors.get(one.name, ())),
                    "visible": True,
                },
            }
            for number, one in enumerate(settings, 1)
        ],
    }


def _definition(one: PluginSetting, number: int) -> dict[str, Any]:
    return {
        "name": one.name,
        "type": one.type,
        "required": one.is_required,
        "default_value": one.default,
        "importance": "HIGH",
        "documentation": one.documentation,
        "group": _GROUP,
        "order_in_group": number,
        "width": "MEDIUM",
        "display_name": one.name,
        "dependents": [],
    }
