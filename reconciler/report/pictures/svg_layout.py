"""Where everything of an SVG picture stands.

Data centres stand in columns. Between the columns, and outside of the outer ones, are channels: every flow has its
label there, and where it only passes a channel or a column, a slot of its own. Things in one column or channel never
overlap, as each is moved as little as that needs; lines bend only between columns and channels. Called by `svg`; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from reconciler.report.pictures.picture import Arrow, Picture
from reconciler.report.pictures.svg_columns import columns
from reconciler.report.pictures.svg_parts import (
    MIN_BOX,
    PANEL_HEAD,
    PANEL_PADDING,
    PORT_GAP,
    ConnectingLine,
    Layout,
    Node,
    Panel,
    Port,
    Rect,
    Side,
    Slot,
    box_height,
    box_width,
    label_height,
    label_width,
)

_MARGIN = 28.0
_HEADER = 64.0
_BEND = 62.0
_PASS = 12.0
_GAPS = {"box": 22.0, "panel": 26.0, "label": 12.0}
_ROUNDS = 16


def laid_out(picture: Picture) -> Layout:
    """Return where everything of a picture stands."""
    return _Plane(picture).layout()


class _Plane:
    """The columns and channels of one picture; channel `n` is left of column `n`."""

    def __init__(self, picture: Picture) -> None:
        self.groups = picture.groups
        width = max((box_width(box) for box in picture.boxes), default=MIN_BOX)
        self.nodes = {box.alias: Node(width=width, height=box_height(box), box=box) for box in picture.boxes}
        # A lone data centre is drawn around all, so that flows between its clusters still go from left to right.
        self.is_one = len(self.groups) == 1
        self.units = self._units()
        home = {node.box.alias: index for index, unit in enumerate(self.units) for node in unit.nodes}
        placed = columns(len(self.units), [(home[one.source], home[one.target]) for one in picture.arrows])
        self.columns: list[list[Panel | Slot]] = [[self.units[index] for index in column] for column in placed]
        self.channels: list[list[Slot]] = [[] for _ in range(len(placed) + 1)]
        where = {index: number for number, column in enumerate(placed) for index in column}
        self.wires = [
            self._wire(arrow, where[home[arrow.source]], where[home[arrow.target]]) for arrow in picture.arrows
        ]
        for unit in self.units:
            self._measure(unit)

    def _units(self) -> list[Panel]:
        if self.is_one:
            return [Panel(nodes=[node]) for node in self.nodes.values()]
        return [Panel(name=name, nodes=[self.nodes[box.alias] for box in boxes]) for name, boxes in self.groups.items()]

    def _wire(self, arrow: Arrow, source: int, target: int) -> ConnectingLine:
        label = Slot(width=label_width(arrow), height=label_height(arrow), is_label=True)
        nodes = self.nodes[arrow.source], self.nodes[arrow.target]
        if source == target:
            # The outer columns turn outwards, where nothing else passes.
            side: Side = "left" if source == 0 and len(self.columns) > 1 else "right"
            self.channels[source + (side == "right")].append(label)
            wire = ConnectingLine(arrow, nodes, (side, side), [label], label, is_turned=False)
        else:
            low, high = sorted((source, target))
            channel = min(range(low + 1, high + 1), key=lambda at: sum(slot.is_label for slot in self.channels[at]))
            slots = []
            for at in range(low + 1, high + 1):
                slot = label if at == channel else Slot(height=_PASS)
                self.channels[at].append(slot)
                slots.append(slot)
                if at < high:
                    slots.append(Slot(height=_PASS))
                    self.columns[at].append(slots[-1])
            turned = target < source
            ends = (nodes[1], nodes[0]) if turned else nodes
            wire = ConnectingLine(arrow, ends, ("right", "left"), slots, label, turned)
        for node, end in zip(wire.ends, wire.sides, strict=True):
            node.ports[end].append(Port(wire))
        return wire

    def _measure(self, unit: Panel) -> None:
        """Give the boxes of a unit their heights and the unit its size; the boxes' places are relative to it."""
        padding, head = (PANEL_PADDING, PANEL_HEAD) if unit.name is not None else (0.0, 0.0)
        y = head
        for node in unit.nodes:
            ports = max(len(ports) for ports in node.ports.values())
            node.height = max(node.height, (ports + 1) * PORT_GAP)
            node.x, node.y = padding, y
            y += node.height + _GAPS["box"]
        unit.width = max((node.width for node in unit.nodes), default=0.0) + 2 * padding
        unit.height = y - _GAPS["box"] + padding

    def layout(self) -> Layout:
        """Return the places of all."""
        for column in self.columns:
            _settle(column, [0.0] * len(column), _GAPS["panel"])
        for _ in range(_ROUNDS):
            self._settle_channels()
            for column in self.columns:
                self._settle_column(column)
        self._settle_channels()
        self._spread()
        self._place_boxes()
        for node in self.nodes.values():
            for ports in node.ports.values():
                self._order(node, ports)
        return self._framed()

    def _settle_channels(self) -> None:
        for channel in self.channels:
            wanted = {id(slot): self._wanted(slot) for slot in channel}
            channel.sort(key=lambda slot: wanted[id(slot)])
            _settle(channel, [wanted[id(slot)] for slot in channel], _GAPS["label"])

    def _settle_column(self, column: list[Panel | Slot]) -> None:
        """Move the panels to their flows, in their order, and sort what passes in between."""
        panels = [item for item in column if isinstance(item, Panel)]
        wanted = {
            id(item): self._wanted(item) if isinstance(item, Slot) else self._panel_wanted(item) for item in column
        }
        _settle(panels, [wanted[id(panel)] for panel in panels], _GAPS["panel"])
        column.sort(key=lambda item: item.middle if isinstance(item, Panel) else wanted[id(item)])
        _settle(column, [wanted[id(item)] for item in column], _GAPS["panel"])

    def _wanted(self, slot: Slot) -> float:
        """Return where a slot would be best: between what is before and behind it."""
        wire = self._wire_of(slot)
        at = wire.slots.index(slot)
        near = [wire.slots[at - 1].middle if at else self._middle(wire.ends[0])]
        near.append(wire.slots[at + 1].middle if at + 1 < len(wire.slots) else self._middle(wire.ends[1]))
        return fmean(near)

    def _wire_of(self, slot: Slot) -> ConnectingLine:
        if not hasattr(self, "_owners"):
            self._owners = {id(one): wire for wire in self.wires for one in wire.slots}
        return self._owners[id(slot)]

    def _middle(self, node: Node) -> float:
        """Return where a box's middle is while its place is relative to its unit."""
        return self._unit_of(node).y + node.middle

    def _unit_of(self, node: Node) -> Panel:
        return next(unit for unit in self.units if node in unit.nodes)

    def _panel_wanted(self, panel: Panel) -> float:
        pulls = []
        for node in panel.nodes:
            for wire in (port.wire for ports in node.ports.values() for port in ports):
                if wire.sides[0] != wire.sides[1]:
                    near = wire.slots[0] if node is wire.ends[0] else wire.slots[-1]
                    pulls.append(near.middle - node.middle + panel.height / 2)
        return fmean(pulls) if pulls else panel.middle

    def _spread(self) -> None:
        """Give columns and channels their places from left to right, and the wires where they cross them."""
        x = 0.0
        tracks: dict[int, Rect] = {}
        for number, channel in enumerate(self.channels):
            if channel:
                outer = number == 0
                width = max(slot.width for slot in channel)
                x += 0.0 if outer else _BEND
                for slot in channel:
                    slot.x = x + (width - slot.width) / 2
                    tracks[id(slot)] = Rect(x, 0.0, width, 0.0)
                x += width + (_BEND if number < len(self.columns) else 0.0)
            elif 0 < number < len(self.columns):
                x += _BEND
            if number < len(self.columns):
                width = max((unit.width for unit in self.columns[number] if isinstance(unit, Panel)), default=0.0)
                for item in self.columns[number]:
                    item.x = x + (width - item.width) / 2 if isinstance(item, Panel) else x
                    tracks[id(item)] = Rect(x, 0.0, width, 0.0)
                x += width
        for wire in self.wires:
            wire.track = tracks[id(wire.label)]
            wire.spans = [(tracks[id(slot)].x, tracks[id(slot)].right) for slot in wire.slots]

    def _place_boxes(self) -> None:
        for unit in self.units:
            for node in unit.nodes:
                node.x, node.y = unit.x + node.x, unit.y + node.y

    def _order(self, node: Node, ports: list[Port]) -> None:
        """Spread the ends of flows over a box's edge, in the order of where they come from."""

        def comes_from(port: Port) -> float:
            return (port.wire.slots[0] if node is port.wire.ends[0] else port.wire.slots[-1]).middle

        ports.sort(key=comes_from)
        for index, port in enumerate(ports):
            port.y = node.middle + (index - (len(ports) - 1) / 2) * PORT_GAP

    def _framed(self) -> Layout:
        """Move all into the first quadrant, below the header, and return it with its size."""
        panels = [unit for unit in self.units if unit.name is not None]
        labels = [wire.label for wire in self.wires]
        if self.is_one:
            panels = [_around([*self.nodes.values(), *labels], next(iter(self.groups)))]
        everything: list[Rect] = [*panels, *self.nodes.values(), *(slot for wire in self.wires for slot in wire.slots)]
        left = _MARGIN - min((one.x for one in everything), default=0.0)
        up = _MARGIN + _HEADER - min((one.y for one in everything), default=0.0)
        for one in everything:
            one.x, one.y = one.x + left, one.y + up
        for port in (port for node in self.nodes.values() for ports in node.ports.values() for port in ports):
            port.y += up
        for wire in self.wires:
            wire.track = Rect(wire.track.x + left, 0.0, wire.track.width, 0.0)
            wire.spans = [(one + left, two + left) for one, two in wire.spans]
        right = max((one.right for one in everything), default=0.0)
        bottom = max((one.bottom for one in everything), default=0.0)
        return Layout(panels, list(self.nodes.values()), self.wires, right + _MARGIN, bottom + _MARGIN)


def _settle(items: Sequence[Rect], wanted: Sequence[float], gap: float) -> None:
    """Place items below each other, in their order, with their middles as near to the given ones as possible.

    Nearest in the sum of squares: items that would overlap are joined to blocks, each at the mean of
    the places of its items.
    """
    offsets: list[float] = []
    for index, item in enumerate(items):
        before = items[index - 1]
        offsets.append(offsets[-1] + (before.height + item.height) / 2 + gap if index else 0.0)
    blocks: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        blocks.append([want - offset])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    shifts = (shift for block in blocks for shift in [fmean(block)] * len(block))
    for item, offset, shift in zip(items, offsets, shifts, strict=True):
        item.y = offset + shift - item.height / 2


def _around(things: Sequence[Rect], name: str) -> Panel:
    """Return the panel of a lone data centre, around all that there is."""
    left, right = min(one.x for one in things), max(one.right for one in things)
    top, bottom = min(one.y for one in things), max(one.bottom for one in things)
    return Panel(
        left - PANEL_PADDING,
        top - PANEL_HEAD,
        right - left + 2 * PANEL_PADDING,
        bottom - top + PANEL_HEAD + PANEL_PADDING,
        name,
    )
