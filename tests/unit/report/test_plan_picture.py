"""Plans as pictures: what changes is in colour, with the counts that the text tells."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import CreateTopic, NotStarted, Plan
from reconciler.report.pictures.picture import Tone
from reconciler.report.plan import to_json as plan_json
from reconciler.report.plan import to_picture as plan_picture
from reconciler.report.plan.to_picture import plan_mermaid, plan_svg
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology
from tests.unit.report.test_graph import LABEL
from tests.unit.report.test_plan import DECLARED, EAST_NOW, as_text, example, in_force, nothing, west_now
from tests.unit.report.test_svg import SVG, Drawn

STYLE = re.compile(r"  (?:classDef \w+ fill:#\w{6},stroke:#\w{6},color:#\w{6}|class (c\d,?)+ \w+)")
LINK = re.compile(r"  linkStyle (\d+,?)+ stroke:#\w{6},stroke-width:[12]px")
FLOW = f"{EAST}-{WEST}"
BACK = f"{WEST}-{EAST}"


def tone(group: ElementTree.Element) -> str:
    return group.attrib["class"].split()[1]


def words(group: ElementTree.Element) -> list[str]:
    return ["".join(line.itertext()) for line in group.iter(f"{SVG}text")]


def tones(declared: Topology, plan: Plan) -> dict[str, str]:
    """Return the tone of each cluster and flow, which label, line and arrow's head have in common."""
    drawn = Drawn(plan_svg(declared, plan))
    found = {name: tone(group) for name, group in drawn.groups("cluster").items()}
    found |= {name: tone(group) for name, group in drawn.groups("flow").items()}
    for wire in drawn.wires:
        assert tone(wire) == found[f"{wire.attrib['data-source']}-{wire.attrib['data-target']}"]
    return found


def first() -> Plan:
    """Everything is made, nothing was there."""
    return plan_of(DECLARED, in_force(EAST_NOW), cluster(WEST, internal=False))


def test_what_is_added_is_green_and_starts() -> None:
    plan = first()
    assert tones(DECLARED, plan) == {EAST: "same", WEST: "add", FLOW: "add", BACK: "same"}
    drawn = Drawn(plan_svg(DECLARED, plan))
    assert words(drawn.groups("cluster")[WEST]) == [WEST, "+3 ~0 -0", "declaration put in force"]
    assert words(drawn.groups("cluster")[EAST]) == [EAST, "+0 ~0 -0"]
    assert words(drawn.groups("flow")[FLOW]) == [
        "+3 ~0 -0  ▶ starts",
        "orders, users, audit",
        "3 topics, identical offsets",
    ]
    assert words(drawn.groups("flow")[BACK]) == ["+0 ~0 -0", "missing", "0 topics"]
    counts = [one for one in drawn.groups("cluster")[WEST].iter(f"{SVG}tspan") if one.text in ("+3", "~0", "-0")]
    assert [one.attrib["class"] for one in counts] == ["add", "dim", "dim"]


def test_what_changes_is_amber_and_nothing_of_it_starts() -> None:
    found = tones(DECLARED, example())
    assert found == {EAST: "change", WEST: "change", FLOW: "change", BACK: "same"}
    drawn = Drawn(plan_svg(DECLARED, example()))
    assert words(drawn.groups("flow")[FLOW])[0] == "+2 ~1 -0"
    assert words(drawn.groups("cluster")[WEST])[1] == "+2 ~1 -0"
    # No topic changes there, but a declaration is put in force.
    assert words(drawn.groups("cluster")[EAST]) == [EAST, "+0 ~0 -0", "declaration put in force"]


def test_what_stays_is_grey() -> None:
    assert set(tones(DECLARED, nothing()).values()) == {"same"}


def test_what_is_deleted_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are those of the JSON: a kind of step that it counts as a deletion is one here."""

    def counted(plan: Plan) -> dict[str, object]:
        told = plan_json.plan_json(plan)
        made = sum(isinstance(step, CreateTopic) for step in plan.steps)
        return told | {"summary": {"add": 0, "own": 0, "change": 1, "delete": made}}

    monkeypatch.setattr(plan_picture, "plan_json", counted)
    found = tones(DECLARED, first())
    assert (found[WEST], found[FLOW], found[BACK]) == ("delete", "delete", "change")


def test_each_flow_counts_its_own_steps_alone() -> None:
    both = topology(flow(include=["orders"]), flow("ap-south", WEST, include=["users"]))
    orders = next(one for one in west_now() if one.source_topic == "orders")
    west = cluster(WEST, made(orders), owned=[record(orders, both)])
    plan = plan_of(both, cluster(EAST, topic("orders", 6, configs=EAST_NOW.topics["orders"].configs)), west, SOUTH)
    groups = Drawn(plan_svg(both, plan)).groups("flow")
    assert {name: (tone(one), words(one)[0]) for name, one in groups.items()} == {
        FLOW: ("same", "+0 ~0 -0"),
        f"ap-south-{WEST}": ("add", "+1 ~0 -0  ▶ starts"),
    }


SOUTH = cluster("ap-south", topic("users", 3))


def test_topics_that_are_not_started_are_counted() -> None:
    plan = nothing()
    left_out = tuple(NotStarted(FLOW, EAST, name, f"us-east.{name}", "why") for name in ("x", "y"))
    plan = replace(plan, clusters=(plan.clusters[0], replace(plan.clusters[1], not_started=left_out)))
    drawn = Drawn(plan_svg(DECLARED, plan))
    assert words(drawn.groups("cluster")[WEST])[-1] == "2 topics not started"
    assert words(drawn.groups("flow")[FLOW])[-1] == "2 topics not started"
    assert "not started" not in " ".join(words(drawn.groups("flow")[BACK]))


def test_what_the_plan_is_not_for_is_pale() -> None:
    plan = replace(first(), clusters=first().clusters[1:])
    resting = flow(EAST, "ap-south", failed_over=True)
    third = topology(*DECLARED.flows, flow(WEST, "ap-south", enabled=False), resting)
    found = tones(third, plan)
    assert found == {
        **{EAST: "absent", WEST: "add", "ap-south": "absent"},
        **{FLOW: "add", BACK: "absent", "eu-west-ap-south": "absent", "us-east-ap-south": "absent"},
    }
    groups = Drawn(plan_svg(third, plan)).groups("flow")
    assert words(groups[BACK])[-1] == "not in this plan"
    assert words(groups["eu-west-ap-south"])[-1] == "disabled"
    assert words(groups["us-east-ap-south"])[-1] == "failed over"
    assert all("dotted" in groups[name].attrib["class"] for name in (BACK, "eu-west-ap-south"))


@pytest.mark.parametrize("plan", [first(), example(), nothing()])
def test_the_numbers_are_those_of_the_text(plan: Plan) -> None:
    drawn = Drawn(plan_svg(DECLARED, plan))
    summary = next(line for line in as_text(plan).splitlines() if " to delete." in line)
    (subtitle,) = (one.text for one in drawn.root.iter(f"{SVG}text") if one.get("class") == "subtitle")
    assert subtitle == summary
    assert str(drawn.root[1].text).startswith(summary)
    counts = [re.findall(r"\d+", words(group)[1]) for group in drawn.groups("cluster").values()]
    add, change, delete = (sum(map(int, column)) for column in zip(*counts, strict=True))
    assert summary.removeprefix("Nothing to do: ").startswith(f"{add} to add")
    assert f" {change} to change, {delete} to delete." in summary


def test_the_legend_tells_every_tone() -> None:
    drawn = Drawn(plan_svg(DECLARED, first()))
    (legend,) = (one for one in drawn.root.iter() if one.get("class") == "legend")
    assert [one.attrib["class"] for one in legend if one.tag == f"{SVG}g"] == [
        "add",
        "change",
        "delete",
        "same",
        "absent",
    ]
    tones: tuple[Tone, ...] = ("add", "change", "delete", "same", "absent")
    for each in tones:
        assert len(re.findall(rf"\.{each} \.line {{ stroke: #", plan_svg(DECLARED, first()))) == 2


def test_mermaid_says_the_same_in_its_colours() -> None:
    lines = plan_mermaid(DECLARED, first()).splitlines()
    assert lines[:9] == [
        "flowchart LR",
        '  subgraph d0["dc-us-east"]',
        '    c0["us-east<br/>+0 #126;0 -0"]',
        "  end",
        '  subgraph d1["dc-eu-west"]',
        '    c1["eu-west<br/>+3 #126;0 -0<br/>declaration put in force"]',
        "  end",
        '  c0 -->|"+3 #126;0 -0  #9654; starts<br/>orders, users, audit<br/>3 topics, identical offsets"| c1',
        '  c1 -->|"+0 #126;0 -0<br/>missing<br/>0 topics"| c0',
    ]
    assert re.fullmatch(rf"  c0 -->\|{LABEL}\| c1", lines[7])
    styles = lines[9:]
    assert all(STYLE.fullmatch(line) or LINK.fullmatch(line) for line in styles)
    assert "  class c1 add" in styles
    assert "  class c0 same" in styles
    assert any(line.startswith("  linkStyle 0 stroke:#1a7f37") for line in styles)
    assert any(line.startswith("  linkStyle 1 stroke:#8c959f") for line in styles)
