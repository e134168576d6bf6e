"""Alert rules and dashboard: as committed, of metrics that exist, explained, and each alert tried by promtool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.metrics import mirrormaker, monitoring, table
from release import monitoring as files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FLOW = 'topology="t",flow="f",source="a",target="b"'
PLACE = f'{FLOW},topic="orders",partition="0"'
# Of each alert: series that fire it, and the same of a neighbour that does not, as promtool writes values over minutes.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "AnabranchLag": (
        {f"anabranch_flow_lag_seconds{{{FLOW}}}": "90+0x20"},
        {f"anabranch_flow_lag_seconds{{{FLOW}}}": "30+0x20"},
    ),
    "AnabranchStalled": (
        {f"anabranch_flow_lag_records{{{FLOW}}}": "5+0x20", f"anabranch_flow_records_per_second{{{FLOW}}}": "0+0x20"},
        {f"anabranch_flow_lag_records{{{FLOW}}}": "5+0x20", f"anabranch_flow_records_per_second{{{FLOW}}}": "7+0x20"},
    ),
    "AnabranchFlowDown": (
        {
            f"anabranch_flow_up{{{FLOW}}}": "0+0x20",
            f"anabranch_flow_enabled{{{FLOW}}}": "1+0x20",
            f"anabranch_flow_failed_over{{{FLOW}}}": "0+0x20",
        },
        {
            f"anabranch_flow_up{{{FLOW}}}": "0+0x20",
            f"anabranch_flow_enabled{{{FLOW}}}": "1+0x20",
            f"anabranch_flow_failed_over{{{FLOW}}}": "1+0x20",
        },
    ),
    "AnabranchTaskSilent": (
        {f"anabranch_flow_tasks_silent{{{FLOW}}}": "1+0x20"},
        {f"anabranch_flow_tasks_silent{{{FLOW}}}": "0+0x20"},
    ),
    "AnabranchParked": (
        {f'anabranch_partition_state{{{PLACE},state="parked"}}': "1+0x20"},
        {f'anabranch_partition_state{{{PLACE},state="paused"}}': "1+0x20"},
    ),
    "AnabranchPaused": (
        {f'anabranch_flow_partitions{{{FLOW},state="paused"}}': "2+0x90"},
        {f'anabranch_flow_partitions{{{FLOW},state="running"}}': "2+0x90"},
    ),
    "AnabranchHeldBack": (
        {f'anabranch_partition_trouble{{{PLACE},code="AB234"}}': "1+0x20"},
        {f'anabranch_partition_trouble{{{PLACE},code="AB220"}}': "1+0x20"},
    ),
    "AnabranchLatency": (
        {
            f'anabranch_replication_latency_seconds_bucket{{{FLOW},task="0",le="30.0"}}': "0+0x40",
            f'anabranch_replication_latency_seconds_bucket{{{FLOW},task="0",le="60.0"}}': "0+100x40",
            f'anabranch_replication_latency_seconds_bucket{{{FLOW},task="0",le="+Inf"}}': "0+100x40",
        },
        {
            f'anabranch_replication_latency_seconds_bucket{{{FLOW},task="0",le="1.0"}}': "0+100x40",
            f'anabranch_replication_latency_seconds_bucket{{{FLOW},task="0",le="+Inf"}}': "0+100x40",
        },
    ),
    "AnabranchRetries": (
        {f"anabranch_partition_retries_total{{{PLACE}}}": "0+2x40"},
        {f"anabranch_partition_retries_total{{{PLACE}}}": "3+0x40"},
    ),
    "AnabranchRestarts": (
        {f'anabranch_task_start_time_seconds{{{FLOW},task="0"}}': "0+60x40"},
        {f'anabranch_task_start_time_seconds{{{FLOW},task="0"}}': "50+0x40"},
    ),
    "AnabranchCheckpointsLate": (
        {f"anabranch_flow_checkpoint_late{{{FLOW}}}": "1+0x20"},
        {f"anabranch_flow_checkpoint_late{{{FLOW}}}": "0+0x20"},
    ),
    "AnabranchGroupStale": (
        {f'anabranch_group_checkpoint_age_seconds{{{FLOW},group="g"}}': "0+60x40"},
        {f'anabranch_group_checkpoint_age_seconds{{{FLOW},group="g"}}': "30+0x40"},
    ),
    "AnabranchClusterAway": (
        {'anabranch_cluster_up{topology="t",cluster="b"}': "0+0x20"},
        {'anabranch_cluster_up{topology="t",cluster="b"}': "1+0x20"},
    ),
    "AnabranchDrift": (
        {'anabranch_drift_items{topology="t",cluster="b",kind="changed"}': "3+0x40"},
        {'anabranch_drift_items{topology="t",cluster="b",kind="none"}': "0+0x40"},
    ),
    "AnabranchExporterStale": (
        {"anabranch_look_time_seconds": "0+0x20"},
        {"anabranch_look_time_seconds": "0+60x20"},
    ),
}
LAST = {"AnabranchPaused": "80m", "AnabranchLatency": "35m", "AnabranchRetries": "35m", "AnabranchRestarts": "35m"}
LATEST = {"AnabranchDrift": "35m", "AnabranchGroupStale": "35m"}


def promtool(*arguments: str) -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool on PATH: it is in the Debian package prometheus")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_committed_files_are_what_the_table_gives() -> None:
    for name, text in files.made().items():
        assert (files.FOLDER / name).read_text(encoding="utf-8") == text, "run `python -m release monitoring`"


def test_no_rule_and_no_panel_names_a_metric_that_is_not_there() -> None:
    known = {one.sample for one in table.OURS} | {f"{table.LATENCY.name}_bucket"}
    known |= {one.name for one in mirrormaker.families(mirrormaker.FORMATS)}
    every: list[monitoring.Alert | monitoring.DashboardPanel] = [*monitoring.ALERTS, *monitoring.PANELS]
    for one in every:
        texts = [one.expression] if isinstance(one, monitoring.Alert) else [query for query, _ in one.queries]
        named = {name for text in texts for name in re.findall(r"\banabranch_\w+", text)}
        assert named <= known
        assert {name.removesuffix("_bucket") for name in named} == {family.sample for family in one.metrics}


def test_each_alert_is_explained_where_it_points() -> None:
    text = (ROOT / monitoring.DOCUMENT).read_text(encoding="utf-8")
    headings = re.findall(r"^## (Anabranch\w+)$", text, re.MULTILINE)
    assert headings == [one.name for one in monitoring.ALERTS]
    for section in re.split(r"^## Anabranch", text, flags=re.MULTILINE)[1:]:
        assert all(f"**{part}**" in section for part in ("Means", "Look at", "Do"))


def test_the_reference_has_the_table_as_it_is() -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    for one in table.OURS:
        assert f"| `{one.sample}` | {one.type} | {', '.join(one.labels)} | {one.help} |" in text
    named = set(re.findall(r"^\| `(anabranch_\w+)`", text, re.MULTILINE))
    assert named == {one.sample for one in table.OURS}


def test_panels_stand_side_by_side_and_name_their_variables() -> None:
    value = json.loads(monitoring.dashboard())
    assert {one["name"] for one in value["templating"]["list"]} == {"datasource", "topology", "flow"}
    taken: set[tuple[int, int]] = set()
    for panel in value["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert value["panels"][0]["title"] == "Lag in seconds"


def test_promtool_takes_the_rules() -> None:
    assert f"{len(monitoring.ALERTS)} rules found" in promtool("check", "rules", str(files.FOLDER / files.RULES))


@pytest.mark.parametrize("alert", monitoring.ALERTS, ids=lambda one: one.name)
def test_an_alert_fires_on_its_series_and_not_on_its_neighbour(alert: monitoring.Alert, tmp_path: Path) -> None:
    assert CASES.keys() == {one.name for one in monitoring.ALERTS}
    at = LAST.get(alert.name) or LATEST.get(alert.name) or "19m"
    for fires, series in zip((True, False), CASES[alert.name], strict=True):
        case: dict[str, Any] = {
            "rule_files": [str(files.FOLDER / files.RULES)],
            "evaluation_interval": "1m",
            "tests": [
                {
                    "interval": "1m",
                    "input_series": [{"series": name, "values": values} for name, values in series.items()],
                    "promql_expr_test": [
                        {
                            "expr": f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}}) or vector(0)',
                            "eval_time": at,
                            "exp_samples": [{"labels": "{}", "value": int(fires)}],
                        }
                    ],
                }
            ],
        }
        path = tmp_path / f"{fires}.json"
        path.write_text(json.dumps(case), encoding="utf-8")
        promtool("test", "rules", str(path))
