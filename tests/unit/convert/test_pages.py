"""The pages for those who come from another replicator: each setting stands beside the field that it becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.convert.plugins import MIRUS, plugin_of
from reconciler.declare.documents import mirrormaker

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "migrate"
NAMES = re.compile(r"`([^`]+)`")
PLAIN = re.compile(r"`[^`]+`(?:, `[^`]+`)*")


def rows() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield page, settings and fields of each row without more; other tables are of commands, topics and habits."""
    for page in sorted(FOLDER.glob("*.md")):
        for line in page.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if line.startswith("| `") and len(cells) == 2 and all(PLAIN.fullmatch(cell) for cell in cells):
                yield page.name, NAMES.findall(cells[0]), NAMES.findall(cells[1])


ROWS = list(rows())


def test_enough_rows_are_read() -> None:
    pages = [page for page, _, _ in ROWS]
    assert pages.count("mirrormaker-2.md") > 35
    assert {"mirus.md", "strimzi.md", "kafka-connect.md"} < set(pages)


@pytest.mark.parametrize(("page", "settings", "fields"), ROWS)
def test_a_setting_stands_beside_its_fields(page: str, settings: list[str], fields: list[str]) -> None:
    for setting in settings:
        if setting.startswith("--"):
            continue
        found = mirrormaker.answer(setting, behind_alias=False)
        assert found is not None, (page, setting)
        assert list(found.fields) == fields, (page, setting)


def test_every_setting_of_the_mirror_connectors_with_a_field_is_on_the_page() -> None:
    known = json.loads((ROOT / "tests/data/connect/settings-4.3.json").read_text())["connector"]
    named = {setting for page, settings, _ in ROWS if page == "mirrormaker-2.md" for setting in settings}
    # Logins are described in a sentence; aliases are in the keys themselves.
    wanted = {key for key in known if (one := mirrormaker.answer(key, behind_alias=False)) and one.fields}
    wanted = {key for key in wanted if not key.startswith(("sasl.", "ssl.")) and not key.endswith("cluster.alias")}
    assert wanted - named <= {"exactly.once.support", "transaction.boundary", "topic.creation.groups"}


def test_every_setting_of_mirus_with_a_field_is_on_its_page() -> None:
    plugin = plugin_of(MIRUS)
    assert plugin is not None
    named = {setting for page, settings, _ in ROWS if page == "mirus.md" for setting in settings}
    own = {one.name for one in plugin.settings if one.name.startswith(("topics.", "destination.topic", "monitor"))}
    assert own
    assert own <= named
