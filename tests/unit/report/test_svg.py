"""Topologies as SVG pictures: everything in it once, nothing over anything else, arrows from edge to edge."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reconciler import declare
from reconciler.cli.main import main
from reconciler.declare.documents.resources import examples
from reconciler.model.declared.topology import Topology
from reconciler.report.pictures.graph import graph_svg
from reconciler.report.pictures.picture import Arrow, Box, Picture
from reconciler.report.pictures.svg import svg
from reconciler.report.pictures.svg_style import HUES
from tests.unit.plan.facts import flow, topology

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = 24
# How wide a letter is, plain and bold, in parts of its size.
LETTER = 0.6
BOLD = 0.7
# Numbers are written to a tenth of a pixel.
ROUNDED = 0.21


@dataclass(frozen=True)
class Place:
    """A rectangle."""

    x: float
    y: float
    right: float
    bottom: float

    def overlaps(self, other: Place) -> bool:
        return self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom

    def holds(self, other: Place) -> bool:
        return self.x <= other.x and other.right <= self.right and self.y <= other.y and other.bottom <= self.bottom

    def holds_point(self, x: float, y: float) -> bool:
        return self.x + 0.5 < x < self.right - 0.5 and self.y + 0.5 < y < self.bottom - 0.5


class Drawn:
    """An SVG document, read again."""

    def __init__(self, text: str) -> None:
        self.root = ElementTree.fromstring(text)
        _, _, width, height = map(float, self.root.attrib["viewBox"].split())
        self.page = Place(0, 0, width, height)
        self.clusters = self._named("cluster", "body")
        self.flows = self._named("flow", "label")
        self.panels = self._named("datacenter", "")

    def groups(self, name: str) -> dict[str, ElementTree.Element]:
        found = [(one.attrib[f"data-{name}"], one) for one in self.root.iter() if f"data-{name}" in one.attrib]
        assert len(found) == len(dict(found)), f"some {name} is drawn twice"
        return dict(found)

    def _named(self, name: str, rectangle: str) -> dict[str, Place]:
        return {
            key: place(next(one for one in group.iter(f"{SVG}rect") if one.get("class", "") == rectangle))
            for key, group in self.groups(name).items()
        }

    @property
    def wires(self) -> list[ElementTree.Element]:
        return [one for one in self.root.iter() if "data-source" in one.attrib]


def width(words: ElementTree.Element) -> float:
    """Return about how wide words are drawn."""
    kind = words.get("class", "")
    size = {"alias": 14.0, "title": 20.0, "subtitle": 13.0}.get(kind, 11.5)
    letter = BOLD if kind in ("alias", "title") else LETTER
    return len("".join(words.itertext())) * size * letter


def place(rect: ElementTree.Element) -> Place:
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return Place(x, y, x + width, y + height)


def numbers(path: str) -> list[tuple[str, list[float]]]:
    return [(kind, list(map(float, rest.split()))) for kind, rest in re.findall(r"([MLCZ])([^MLCZ]*)", path)]


def points(path: str) -> Iterator[tuple[float, float]]:
    """Yield points along a path, close to each other."""
    x = y = 0.0
    for kind, given in numbers(path):
        if kind == "M":
            x, y = given
        corners = given if kind == "C" else [x, y, *given, *given]
        for step in range(SAMPLES + 1):
            t = step / SAMPLES
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            xs, ys = (x, *corners[0::2]), (y, *corners[1::2])
            yield (
                sum(w * v for w, v in zip(weights, xs, strict=True)),
                sum(w * v for w, v in zip(weights, ys, strict=True)),
            )
        x, y = given[-2:]


def named(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def shapes() -> dict[str, Topology]:
    made = {name: declare.load([path]) for name, path in examples().items()}
    for count in (2, 3, 5, 8, 12):
        ring = named(count)
        made[f"ring of {count}"] = topology(*map(flow, ring, [*ring[1:], ring[0]]))
        made[f"fan-out to {count}"] = topology(*(flow("hub", one) for one in ring))
        made[f"aggregation of {count}"] = topology(*(flow(one, "hub") for one in ring))
        both = [pair for one in ring for pair in ((one, "hub"), ("hub", one))]
        made[f"hub and {count}"] = topology(*itertools.starmap(flow, both))
    for count in (3, 6):
        made[f"mesh of {count}"] = topology(*itertools.starmap(flow, itertools.permutations(named(count), 2)))
    long = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "e"), ("a", "d"), ("e", "f"), ("f", "e"), ("x", "f")]
    made["long lines"] = topology(*itertools.starmap(flow, long))
    made["long names"] = topology(flow("a" * 90, "b", include=["t" * 300, "u" * 40]), flow("b", "c", tasks=3))
    return made


SHAPES = shapes()


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> Topology:
    return SHAPES[request.param]


def test_each_cluster_and_flow_is_there_once(shape: Topology) -> None:
    drawn = Drawn(graph_svg(shape))
    assert set(drawn.clusters) == set(shape.aliases)
    assert sorted(drawn.flows) == sorted(one.name for one in shape.flows)
    assert set(drawn.panels) == {one.datacenter for one in shape.clusters.values()}
    told = sorted((one.attrib["data-source"], one.attrib["data-target"]) for one in drawn.wires)
    assert told == sorted((one.source, one.target) for one in shape.flows)


def test_nothing_lies_over_anything_else(shape: Topology) -> None:
    drawn = Drawn(graph_svg(shape))
    for one, two in itertools.combinations([*drawn.clusters.values(), *drawn.flows.values()], 2):
        assert not one.overlaps(two)
    for one, two in itertools.combinations(drawn.panels.values(), 2):
        assert not one.overlaps(two)
    for alias, cluster in shape.clusters.items():
        assert drawn.panels[cluster.datacenter].holds(drawn.clusters[alias])
        for name, panel in drawn.panels.items():
            assert name == cluster.datacenter or not panel.overlaps(drawn.clusters[alias])
    for each in [*drawn.clusters.values(), *drawn.flows.values(), *drawn.panels.values()]:
        assert drawn.page.holds(each)


def test_words_stay_in_their_boxes_and_on_the_page(shape: Topology) -> None:
    drawn = Drawn(graph_svg(shape))
    places = {"cluster": drawn.clusters, "flow": drawn.flows, "datacenter": drawn.panels}
    for kind, found in places.items():
        for name, group in drawn.groups(kind).items():
            for words in group.iter(f"{SVG}text"):
                x, y = float(words.attrib["x"]), float(words.attrib["y"])
                assert found[name].holds(Place(x, y - 11, x + width(words), y + 2)), (kind, name)
    for words in drawn.root.iter(f"{SVG}text"):
        assert float(words.attrib["x"]) + width(words) <= drawn.page.right


def test_arrows_go_from_edge_to_edge_and_through_nobody_else(shape: Topology) -> None:
    drawn = Drawn(graph_svg(shape))
    by_ends = {(one.source, one.target): one.name for one in shape.flows}
    for wire in drawn.wires:
        ends = wire.attrib["data-source"], wire.attrib["data-target"]
        source, target = (drawn.clusters[alias] for alias in ends)
        line, head = (one.attrib["d"] for one in wire.iter(f"{SVG}path"))
        (_, (x, y)), (_, (tip_x, tip_y)) = numbers(line)[0], numbers(head)[0]
        assert min(abs(x - edge) for edge in (source.x, source.right)) < ROUNDED
        assert source.y < y < source.bottom
        assert min(abs(tip_x - edge) for edge in (target.x, target.right)) < ROUNDED
        assert target.y < tip_y < target.bottom
        others = [*drawn.clusters.values(), *(at for name, at in drawn.flows.items() if name != by_ends[ends])]
        own = drawn.flows[by_ends[ends]]
        met = 0
        for point in points(line):
            assert not any(other.holds_point(*point) for other in others), (ends, point)
            met += own.x - 0.1 <= point[0] <= own.right + 0.1 and own.y <= point[1] <= own.bottom
        assert met, f"{ends} does not meet its label"


def test_ends_of_flows_at_one_box_are_apart(shape: Topology) -> None:
    drawn = Drawn(graph_svg(shape))
    ends: list[tuple[float, float]] = []
    for wire in drawn.wires:
        line, head = (one.attrib["d"] for one in wire.iter(f"{SVG}path"))
        ends += [tuple(numbers(path)[0][1]) for path in (line, head)]  # type: ignore[misc]
    assert len(ends) == len(set(ends)) == 2 * len(shape.flows)


def test_most_flows_go_to_the_right_where_nothing_comes_back() -> None:
    drawn = Drawn(graph_svg(SHAPES["fan-out to 12"]))
    assert all(drawn.clusters["hub"].right < drawn.clusters[one].x for one in named(12))
    drawn = Drawn(graph_svg(SHAPES["long lines"]))
    for one in SHAPES["long lines"].flows:
        if {one.source, one.target} != {"e", "f"}:
            assert drawn.clusters[one.source].right < drawn.clusters[one.target].x


def test_the_same_topology_gives_the_same_bytes() -> None:
    path = examples()["xdcr"]
    told = {
        subprocess.run(
            [sys.executable, "-m", "reconciler.cli.main", "graph", str(path), "--format", "svg"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {graph_svg(declare.load([path])).encode()}


def test_hostile_names_are_words_and_no_markup() -> None:
    odd = '<script>alert("1")</script>&amp;\'\x00\x1b]]>\ud800'
    said = '<script>alert("1")</script>&amp;\'\\x00\\x1b]]>\\ud800'
    boxes = (Box(odd, f"{odd} centre", ((("]]>&<", ""),),)), Box("b", odd))
    text = svg(Picture(odd, odd, odd, boxes, (Arrow(odd, odd, "b", (((odd, "code"),),)),), (("words", odd),)))
    drawn = Drawn(text)
    assert "<script" not in text
    assert {one.tag.removeprefix(SVG) for one in drawn.root.iter()} == {
        *("svg", "title", "desc", "style", "rect", "text", "tspan", "g", "path")
    }
    assert set(drawn.clusters) == {said, "b"}
    assert set(drawn.flows) == {said}
    assert set(drawn.panels) == {f"{said} centre", said}


def test_wide_letters_have_room() -> None:
    narrow, wide = (Picture("t", "", "", (Box(name, "d"), Box("b", "e")), ()) for name in ("n" * 20, "幅" * 20))
    assert Drawn(svg(wide)).clusters["幅" * 20].right > Drawn(svg(narrow)).clusters["n" * 20].right * 1.4


def test_it_stands_alone_and_has_words_for_who_cannot_see_it() -> None:
    text = graph_svg(SHAPES["xdcr"])
    root = Drawn(text).root
    assert (root.attrib["role"], root.attrib["aria-labelledby"]) == ("img", "title desc")
    assert [root[0].attrib["id"], root[0].text, root[1].attrib["id"]] == ["title", "shop", "desc"]
    assert str(root[1].text).startswith("4 clusters, 6 flows: west-1 to west-2; ")
    assert "@media (prefers-color-scheme: dark)" in text
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|@import|<image", text)


def test_flows_have_the_colour_of_their_source_and_those_that_rest_are_dotted() -> None:
    drawn = Drawn(graph_svg(topology(flow("a", "b"), flow("b", "a", enabled=False), flow("a", "c", failed_over=True))))
    groups = drawn.groups("flow")
    assert groups["a-b"].attrib["class"] == f"flow {HUES[0][0]}"
    assert groups["b-a"].attrib["class"] == f"flow {HUES[1][0]} dotted"
    assert groups["a-c"].attrib["class"] == f"flow {HUES[0][0]} dotted"
    (legend,) = (one for one in drawn.root.iter() if one.get("class") == "legend")
    assert [one.text for one in legend.iter(f"{SVG}text")] == [
        "flow, in the colour of its source",
        "disabled or failed over",
    ]


def test_a_topology_without_flows_and_one_with_a_lone_cluster() -> None:
    alone = Picture("t", "s", "d", (Box("a", "x"), Box("b", "x")), ())
    drawn = Drawn(svg(alone))
    assert set(drawn.clusters) == {"a", "b"}
    assert not drawn.clusters["a"].overlaps(drawn.clusters["b"])
    assert drawn.page.holds(drawn.panels["x"])


def test_the_picture_in_the_readme_is_of_its_file(tmp_path: Path) -> None:
    (declaration,) = re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "first-topology.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "payments.yaml").write_text(declaration)
    drawn = graph_svg(declare.load([tmp_path / "payments.yaml"]))
    assert (ROOT / "docs" / "pictures" / "payments.svg").read_text(encoding="utf-8") == drawn


def test_the_command_writes_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "payments.yaml"
    path.write_text(examples()["active-active"].read_text())
    assert main(["graph", str(path), "--format", "svg"]) == 0
    assert set(Drawn(capsys.readouterr().out).clusters) == {"us-east", "eu-west"}
