"""Alert rules for Prometheus and a dashboard for Grafana, made from the table of metrics.

`python -m release monitoring` writes them to `deploy/monitoring/`, and a test holds those files against this one. Each
alert has a section in `docs/operate.md`, which its annotation links to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.declare.rewrite import yaml_text
from reconciler.metrics import table
from reconciler.metrics.table import MetricFamily

DOCUMENT = "docs/operate.md"
_GROUP = "anabranch"
_OF_FLOW = "{{ $labels.flow }} ({{ $labels.source }} → {{ $labels.target }})"
_OF_PARTITION = "{{ $labels.topic }}/{{ $labels.partition }} of flow {{ $labels.flow }}"


@dataclass(frozen=True)
class Alert:
    """One alert.

    Attributes:
        name: as Prometheus shows it.
        expression: in PromQL, of metrics of the table.
        wait: how long it must hold.
        severity: `critical` for what loses service now, else `warning`.
        summary: one line, with labels of the series.
        metrics: those that the expression is made of.
    """

    name: str
    expression: str
    wait: str
    severity: str
    summary: str
    metrics: tuple[MetricFamily, ...]

    @property
    def anchor(self) -> str:
        """Where it is explained, below `DOCUMENT`."""
        return self.name.lower()


def _lasting(name: str, family: MetricFamily, condition: str, wait: str, severity: str, summary: str) -> Alert:
    return Alert(name, f"{family.sample}{condition}", wait, severity, summary, (family,))


ALERTS: tuple[Alert, ...] = (
    _lasting(
        "AnabranchLag",
        table.FLOW_LAG_SECONDS,
        " > 60",
        "5m",
        "warning",
        f"Flow {_OF_FLOW} is {{{{ $value | humanizeDuration }}}} behind.",
    ),
    Alert(
        "AnabranchStalled",
        f"{table.FLOW_LAG_RECORDS.sample} > 0 and {table.FLOW_RECORD_RATE.sample} == 0",
        "2m",
        "critical",
        f"Flow {_OF_FLOW} has {{{{ $value }}}} records to copy and copies none.",
        (table.FLOW_LAG_RECORDS, table.FLOW_RECORD_RATE),
    ),
    Alert(
        "AnabranchFlowDown",
        f"{table.FLOW_UP.sample} == 0 and {table.FLOW_ENABLED.sample} == 1 and {table.FLOW_FAILED_OVER.sample} == 0",
        "1m",
        "critical",
        f"No task of flow {_OF_FLOW} reports.",
        (table.FLOW_UP, table.FLOW_ENABLED, table.FLOW_FAILED_OVER),
    ),
    _lasting(
        "AnabranchTaskSilent",
        table.FLOW_TASKS_SILENT,
        " > 0",
        "1m",
        "warning",
        f"{{{{ $value }}}} tasks of flow {_OF_FLOW} stopped reporting.",
    ),
    _lasting(
        "AnabranchParked",
        table.PARTITION_STATE,
        '{state="parked"} == 1',
        "1m",
        "warning",
        f"Partition {_OF_PARTITION} is parked.",
    ),
    Alert(
        "AnabranchPaused",
        f'{table.FLOW_PARTITIONS.sample}{{state="paused"}} > 0',
        "1h",
        "warning",
        f"{{{{ $value }}}} partitions of flow {_OF_FLOW} have been paused for an hour.",
        (table.FLOW_PARTITIONS,),
    ),
    Alert(
        "AnabranchHeldBack",
        f'{table.PARTITION_TROUBLE.sample}{{code="AB234"}} == 1',
        "5m",
        "warning",
        f"An open transaction holds records of {_OF_PARTITION} back.",
        (table.PARTITION_TROUBLE,),
    ),
    Alert(
        "AnabranchLatency",
        "histogram_quantile(0.99, sum by (topology, flow, source, target, le) "
        f"(rate({table.LATENCY.name}_bucket[5m]))) > 30",
        "10m",
        "warning",
        f"99 of 100 records of flow {_OF_FLOW} take up to {{{{ $value | humanizeDuration }}}}.",
        (table.LATENCY,),
    ),
    Alert(
        "AnabranchRetries",
        f"increase({table.PARTITION_RETRIES.sample}[15m]) > 10",
        "5m",
        "warning",
        f"Partition {_OF_PARTITION} was opened anew {{{{ $value | humanize }}}} times in 15 minutes.",
        (table.PARTITION_RETRIES,),
    ),
    Alert(
        "AnabranchRestarts",
        f"changes({table.TASK_START.sample}[30m]) > 3",
        "1m",
        "warning",
        f"Task {{{{ $labels.task }}}} of flow {_OF_FLOW} began anew {{{{ $value }}}} times in 30 minutes.",
        (table.TASK_START,),
    ),
    _lasting(
        "AnabranchCheckpointsLate",
        table.FLOW_CHECKPOINT_LATE,
        " == 1",
        "2m",
        "warning",
        f"The consumer groups of flow {_OF_FLOW} are not synced in time.",
    ),
    Alert(
        "AnabranchGroupStale",
        f"{table.GROUP_AGE.sample} > 600 or {table.GROUP_REFUSED.sample} == 1",
        "5m",
        "warning",
        f"Group {{{{ $labels.group }}}} of flow {_OF_FLOW} is not synced.",
        (table.GROUP_AGE, table.GROUP_REFUSED),
    ),
    _lasting(
        "AnabranchClusterAway",
        table.CLUSTER_UP,
        " == 0",
        "1m",
        "critical",
        "Target cluster {{ $labels.cluster }} does not answer.",
    ),
    _lasting(
        "AnabranchDrift",
        table.DRIFT,
        " > 0",
        "15m",
        "warning",
        "{{ $value }} differences ({{ $labels.kind }}) at cluster {{ $labels.cluster }} since the last apply.",
    ),
    Alert(
        "AnabranchExporterStale",
        f"time() - {table.LOOK_TIME.sample} > 60",
        "1m",
        "critical",
        "The exporter has not read the status topics for {{ $value | humanizeDuration }}.",
        (table.LOOK_TIME,),
    ),
)


def rules() -> str:
    """Return the file of alert rules, in YAML."""
    found = [
        {
            "alert": one.name,
            "expr": one.expression,
            "for": one.wait,
            "labels": {"severity": one.severity},
            "annotations": {"summary": one.summary, "runbook_url": f"{DOCUMENT}#{one.anchor}"},
        }
        for one in ALERTS
    ]
    return yaml_text({"groups": [{"name": _GROUP, "rules": found}]})


@dataclass(frozen=True)
class DashboardPanel:
    """One panel of the dashboard.

    Attributes:
        title: above it.
        unit: of Grafana.
        queries: expression and legend of each line.
        metrics: those that the expressions are made of.
        is_wide: whether it takes the whole width.
    """

    title: str
    unit: str
    queries: Sequence[tuple[str, str]]
    metrics: tuple[MetricFamily, ...]
    is_wide: bool = False


_FLOWS = '{topology=~"$topology",flow=~"$flow"}'
_WITH = '{topology=~"$topology",flow=~"$flow",'
_NAME = "{{flow}}"
_PLACE = "{{flow}} {{topic}}/{{partition}}"

PANELS: tuple[DashboardPanel, ...] = (
    DashboardPanel(
        "Lag in seconds",
        "s",
        [(f"{table.FLOW_LAG_SECONDS.sample}{_FLOWS}", _NAME)],
        (table.FLOW_LAG_SECONDS,),
        is_wide=True,
    ),
    DashboardPanel(
        "Lag in records", "short", [(f"{table.FLOW_LAG_RECORDS.sample}{_FLOWS}", _NAME)], (table.FLOW_LAG_RECORDS,)
    ),
    DashboardPanel("Flows that report", "short", [(f"{table.FLOW_UP.sample}{_FLOWS}", _NAME)], (table.FLOW_UP,)),
    DashboardPanel(
        "Partitions that do not run",
        "short",
        [
            (f'{table.FLOW_PARTITIONS.sample}{_WITH}state="parked"}}', f"{_NAME} parked"),
            (f'{table.FLOW_PARTITIONS.sample}{_WITH}state="paused"}}', f"{_NAME} paused"),
        ],
        (table.FLOW_PARTITIONS,),
    ),
    DashboardPanel(
        "Reasons",
        "short",
        [(f"{table.PARTITION_TROUBLE.sample}{_FLOWS}", f"{_PLACE} {{{{code}}}}")],
        (table.PARTITION_TROUBLE,),
    ),
    DashboardPanel(
        "Records per second",
        "short",
        [(f"{table.FLOW_RECORD_RATE.sample}{_FLOWS}", _NAME)],
        (table.FLOW_RECORD_RATE,),
    ),
    DashboardPanel(
        "Bytes per second", "Bps", [(f"{table.FLOW_BYTE_RATE.sample}{_FLOWS}", _NAME)], (table.FLOW_BYTE_RATE,)
    ),
    DashboardPanel(
        "Replication latency",
        "s",
        [
            (
                f"histogram_quantile({quantile}, sum by (flow, le) (rate({table.LATENCY.name}_bucket{_FLOWS}[5m])))",
                f"{_NAME} p{round(100 * quantile)}",
            )
            for quantile in (0.5, 0.99)
        ],
        (table.LATENCY,),
    ),
    DashboardPanel(
        "Worst partitions by lag",
        "s",
        [(f"topk(10, {table.PARTITION_LAG_SECONDS.sample}{_FLOWS})", _PLACE)],
        (table.PARTITION_LAG_SECONDS,),
    ),
    DashboardPanel(
        "Age of checkpoints",
        "s",
        [(f"{table.FLOW_CHECKPOINT_AGE.sample}{_FLOWS}", _NAME)],
        (table.FLOW_CHECKPOINT_AGE,),
    ),
    DashboardPanel(
        "Groups",
        "short",
        [
            (f"{table.FLOW_GROUPS.sample}{_FLOWS}", f"{_NAME} synced"),
            (f"{table.FLOW_GROUPS_REFUSED.sample}{_FLOWS}", f"{_NAME} refused"),
        ],
        (table.FLOW_GROUPS, table.FLOW_GROUPS_REFUSED),
    ),
    DashboardPanel(
        "Drift",
        "short",
        [(f'{table.DRIFT.sample}{{topology=~"$topology"}}', "{{cluster}} {{kind}}")],
        (table.DRIFT,),
    ),
    DashboardPanel(
        "Memory of tasks", "bytes", [(f"{table.TASK_MEMORY.sample}{_FLOWS}", "{{flow}}/{{task}}")], (table.TASK_MEMORY,)
    ),
    DashboardPanel(
        "Clusters that answer",
        "short",
        [(f'{table.CLUSTER_UP.sample}{{topology=~"$topology"}}', "{{cluster}}")],
        (table.CLUSTER_UP,),
    ),
)
_WIDTH, _HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """Return the dashboard, to be imported into Grafana 10 or newer."""
    panels: list[dict[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        width = _WIDTH if panel.is_wide else _WIDTH // 2
        if x + width > _WIDTH:
            x, y = 0, y + _HEIGHT
        panels.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": _HEIGHT}))
        x += width
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        _variable("topology", f"label_values({table.FLOW_UP.sample}, topology)"),
        _variable("flow", f'label_values({table.FLOW_UP.sample}{{topology=~"$topology"}}, flow)'),
    ]
    return _text(
        {
            "uid": "anabranch",
            "title": "Anabranch",
            "tags": ["kafka", "replication"],
            "schemaVersion": 39,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": variables},
            "panels": panels,
        }
    )


def _panel(number: int, panel: DashboardPanel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": " ".join(one.help for one in panel.metrics),
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "label": name.capitalize(),
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
    }


def _text(value: dict[str, Any]) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"
