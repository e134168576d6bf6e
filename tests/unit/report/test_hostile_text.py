"""No printer gives a name that others chose to a terminal, a page or a spreadsheet as anything but text."""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
import pkgutil
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # rich brings it
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from reconciler import report
from reconciler.checkpoints.groups.files import long_cells, read_file
from reconciler.cli.common import print_problems
from reconciler.cli.main import main
from reconciler.model.base.errors import EnvironmentFault, Problem, together
from reconciler.model.base.text import from_cell, json_text, shown
from reconciler.model.offsets.committed import Committed, LogBounds
from reconciler.report.acls import acls_commands
from reconciler.report.offsets import offsets_csv, offsets_json
from reconciler.report.plan.file import read_plan, write_plan
from reconciler.report.plan.to_json import plan_json
from reconciler.report.text.line import Lines, Terminal
from reconciler.report.verify_progress import VerifyProgress
from tests.support.hostile.names import KINDS, PLAIN, named
from tests.support.hostile.printers import PRINTERS, Printer
from tests.support.hostile.values import granted, plan, problem

# What no printer is: helpers whose words all come out of one, and our own reference of codes.
HELPERS = {
    *("acls.granted", "clients.clients_told", "text.columns.aligned", "explain.explained", "status.lag.lag_rows"),
    *("explain.field_lines", "status.to_json.without_partitions", "status.topics.topic_rows", "describe.topics_of"),
    *("error_codes.is_like_a_code", "error_codes.entries", "error_codes.entry_text"),
    *("error_codes.codes_text", "plan.drift.summary", "verify.summary", "offsets.moved_line", "plan.outcome.task"),
    *(
        "text.markdown.code",
        "text.markdown.plain",
        "pictures.mermaid.mermaid",
        "pictures.mermaid.plain_text",
        "pictures.svg.svg",
        "pictures.svg_style.stylesheet",
    ),
    *(
        "status.log.of_flow",
        "status.log.of_partition",
        "status.log.of_problem",
        "text.line.live_terminal",
        "text.line.shown_in_place",
    ),
    *("text.measures.count", "text.measures.seconds", "text.measures.milliseconds", "text.measures.bytes_per_second"),
    *(
        "pictures.picture.printable",
        "pictures.picture.topology_picture",
        "pictures.picture.columns",
        "pictures.picture.taken",
    ),
    *("plan.file.write_plan", "plan.file.read_plan", "plan.to_json.action", "plan.to_picture.plan_picture"),
    *(
        "status.summary.summarise",
        "status.summary.with_pauses",
        "status.summary.standing",
        "status.summary.flow_words",
        "pictures.svg_columns.columns",
        "pictures.svg_layout.laid_out",
    ),
    *(f"pictures.svg_parts.{name}" for name in ("text_width", "shortened", "box_width", "box_height", "label_width")),
    *("pictures.svg_parts.label_height", "pictures.svg_parts.fitted"),
    *(f"text.words.{name}" for name in ("acl_reason", "place", "turn", "counted", "padding", "in_force", "summary")),
    *(f"status.states.{name}" for name in ("state_of", "unheard", "waiting_for")),
    *(f"text.words.{name}" for name in ("fate", "fact_change", "field_change", "stopped")),
    *(f"plan.deployments.{name}" for name in ("deployment_json", "deployment_entries")),
    *("text.words.shared_settings", "text.sections.within", "plan.file.write_text"),
    *(f"plan.grouping.{name}" for name in ("folded", "access_groups", "new_topics", "notice_groups", "becomes")),
}
# So much of a name stands there whole, also where a picture cuts it.
BEGINNING = 20


def functions() -> Iterator[str]:
    for module in pkgutil.walk_packages(report.__path__, f"{report.__name__}."):
        found = importlib.import_module(module.name)
        for name, value in vars(found).items():
            is_own = getattr(value, "__module__", None) == found.__name__
            if not name.startswith("_") and is_own and callable(value) and not isinstance(value, type):
                yield f"{module.name.removeprefix(report.__name__ + '.')}.{name}"


def printed(printer: Printer, name: str) -> str:
    made = printer.call(name)
    if printer.shape == "json":
        return json_text(made, indent=2) + "\n"
    if printer.shape != "text":
        return str(made)
    file = io.StringIO()
    # One that reads markup and hides nothing: what is safe there is safe everywhere.
    console = Console(file=file, width=1_000_000, soft_wrap=True, highlight=False)
    for line in [made] if isinstance(made, Lines | Group) else made:
        console.print(line)
    return file.getvalue()


def beginning(name: str) -> str:
    return shown(name)[:BEGINNING].strip()


@pytest.fixture(scope="module", params=PRINTERS, ids=[f"{n}-{one}" for n, one in enumerate(PRINTERS)])
def printer(request: pytest.FixtureRequest) -> Printer:
    found: Printer = request.param
    return found


def test_every_printer_is_tested_here() -> None:
    known = {str(one) for one in PRINTERS}
    assert set(functions()) - HELPERS == known
    assert set(functions()) >= HELPERS


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_text_and_nothing_else(printer: Printer, kind: str) -> None:
    name = named(kind)
    text, harmless = printed(printer, name), printed(printer, PLAIN)
    assert [line for line in text.split("\n") if shown(line, len(line) + 100) != line] == [], "something hidden"
    if printer.shape not in ("csv", "svg"):
        assert text.count("\n") == harmless.count("\n"), "lines are forged"
    READ[printer.shape](text, name)
    READ[printer.shape](harmless, PLAIN)


def as_text(text: str, name: str) -> None:
    assert beginning(name) in text


def as_json(text: str, name: str) -> None:
    value = json.loads(text)

    def strings(one: Any) -> Iterator[str]:
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            for below in one.values() if isinstance(one, dict) else one:
                yield from strings(below)

    assert any(name in one or name == one for one in strings(value))


def as_csv(text: str, name: str) -> None:
    with long_cells():
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert text.count("\n") == 1 + len(rows), "a row is a line"
    assert {len(row) for row in rows} == {len(header)}
    assert name in map(from_cell, rows[0])
    assert not [cell for cell in rows[0] if re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]", cell)], "a formula"
    # In other countries a spreadsheet takes these for separators.
    outside = re.sub(r'"(?:[^"]|"")*"', "", text)
    assert ";" not in outside


def as_svg(text: str, name: str) -> None:
    root = ET.fromstring(text)
    tags = {one.tag.rpartition("}")[2] for one in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "text", "tspan", "g", "path"}
    assert beginning(name) in "".join(root.itertext())


def as_mermaid(text: str, name: str) -> None:
    said = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)
    assert beginning(name) in said
    for line in text.splitlines():
        assert line.count('"') in (0, 2), line
        assert "%%" not in line
        assert not line.strip().startswith("click")


def as_shell(text: str, name: str) -> None:
    assert beginning(name) in text
    for line in text.splitlines():
        assert not line or line.startswith(("# ", "kafka-acls.sh "))


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INLINE = {"text", "text_special", "code_inline", "strong_open", "strong_close", "html_inline", "softbreak"}
FOLDED = re.compile(r"<details><summary>the \d+ [a-z]+</summary>\n|</details>\n")


def as_markdown(text: str, name: str) -> None:
    tokens = MARKDOWN.parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= INLINE
    assert {child.content for child in inline if child.type == "html_inline"} <= {"<code>", "</code>"}
    assert all(FOLDED.fullmatch(token.content) for token in tokens if token.type == "html_block")
    assert {token.type for token in tokens}.isdisjoint({"fence", "code_block", "blockquote_open", "hr"})
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, "cells are forged"
    page = MARKDOWN.render(text)
    assert beginning(name) in html.unescape(re.sub("<.*?>|\u200b", "", page))
    # Forges look for these in what is shown outside of code.
    words = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<code>.*?</code>", "", page)))
    assert not re.search(r"[@#!&$%~]\w|\bGH-\d|://|www\.|:smile:", words)


READ: dict[str, Callable[[str, str], None]] = {
    "text": as_text,
    "json": as_json,
    "csv": as_csv,
    "svg": as_svg,
    "mermaid": as_mermaid,
    "shell": as_shell,
    "markdown": as_markdown,
}


# --- words of commands, files, and what is printed without a printer -------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "half of a pair" and "\x00" not in KINDS[kind]])
def test_a_shell_reads_the_word_that_was_meant(kind: str) -> None:
    (line,) = [one for one in acls_commands(granted(named(kind))).splitlines() if one.startswith("kafka-acls.sh")]
    # Instead of the tool, a command that tells its arguments.
    told = f"printf '%s\\0'{line.removeprefix('kafka-acls.sh')}"
    done = subprocess.run(
        ["bash", "-s"], input=told.encode(), env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True
    )
    words = done.stdout.decode().split("\0")
    assert words[words.index("--allow-principal") + 1] == named(kind)
    assert words[words.index("--group") + 1] == named(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_what_is_exported_is_imported_as_it_was(kind: str, suffix: str, tmp_path: Path) -> None:
    name, path = named(kind), tmp_path / f"offsets{suffix}"
    row = Committed(name, name, 0, 3, name)
    text = json_text(offsets_json([row]), indent=2) if suffix == ".json" else offsets_csv("group", [row])
    path.write_text(text, encoding="utf-8", newline="")
    found = read_file(path)
    if kind == "half of a pair":
        assert {one.code for one in found.problems} == {"AB621"}, "no group is called so"
        return
    (asked,) = found.asked
    assert (asked.owner, asked.topic, asked.metadata, asked.offset) == (name, name, name, 3)


BEGINS = st.sampled_from(["", *"=+-@\t\r\n'\\,; \uff1d", '"', '""', '"='])
NAMES = st.builds(str.__add__, BEGINS, st.text(max_size=40))


@given(NAMES, NAMES.filter(bool), NAMES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_is_exported_and_imported(tmp_path: Path, group: str, topic: str, metadata: str) -> None:
    rows = [Committed(group, topic, 0, 3, metadata), Committed("next", "t", 1, 2)]
    path = tmp_path / "offsets.csv"
    path.write_text(offsets_csv("group", rows), encoding="utf-8", newline="")
    found = read_file(path)
    assert found.problems == ()
    assert [(one.owner, one.topic, one.partition, one.offset, one.metadata, one.where) for one in found.asked] == [
        (group, topic, 0, 3, metadata, f"{path}:2"),
        ("next", "t", 1, 2, "", f"{path}:3"),
    ]


def test_numbers_stay_numbers_and_a_file_written_by_hand_needs_no_quotes(tmp_path: Path) -> None:
    assert offsets_csv("group", [Committed("g", "t", 0, 9, "", None, LogBounds(-1, 0, 5))]).endswith(
        "\ng,t,0,9,,,-1,0,5,-4\n"
    )
    path = tmp_path / "offsets.csv"
    path.write_text('group,topic,partition,offset\n=a,-b,0,3\n"\'=a","""x",1,4\n"""""",c,2,5\n,d,3,6\n')
    found = read_file(path)
    assert [(one.owner, one.topic) for one in found.asked] == [("=a", "-b"), ("'=a", '"x'), ("", "c")]
    assert [(one.where, one.message) for one in found.problems] == [(f"{path}:5", "expected a group; found nothing")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_as_many_lines_as_it_should_be(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = named(kind)
    print_problems([problem(name)])
    first, second, end = capsys.readouterr().err.split("\n")
    assert (first.isprintable(), second.startswith("    → "), second.isprintable(), end) == (True, True, True, "")
    assert str(problem(name)).isprintable()
    assert beginning(name) in first
    assert "[AB304]" in first
    assert str(problem(name)).endswith(" [AB304]")


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_shows_whatever_is_printed_on_it(kind: str) -> None:
    name, file = named(kind), io.StringIO()
    terminal = Terminal()
    terminal.file = file
    table = Table(name)
    table.add_row(name)
    for one in (name, Text(name), table, Text.assemble((name, "bold"))):
        terminal.print(one, style="dim")
    terminal.print(name, name, sep="\n")
    text = file.getvalue()
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert beginning(name)[:8] in text


def test_a_bar_and_a_status_read_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in (("TERM", "xterm"), ("FORCE_COLOR", "1"), ("TTY_INTERACTIVE", "1")):
        monkeypatch.setenv(variable, value)
    file = io.StringIO()
    terminal = Terminal()
    terminal.file = file
    with VerifyProgress(terminal) as bar:
        bar.phase("[/x]\x1b]0;mine\x07")
    with terminal.status("[/x]\x1b]0;mine\x07"):
        pass
    assert "[/x]\\x1b]0;mine\\x07" in file.getvalue()
    assert "\x1b]0" not in file.getvalue()


def test_what_nobody_foresaw_is_told_in_two_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError(KINDS["colour"] + KINDS["line break"])

    monkeypatch.setattr("reconciler.cli.main.get_command", fail)
    assert main([]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 2
    assert told.startswith(r"unexpected RuntimeError: \x1b[31m\x1b[2Ja\n  done      forged\r\n| x |")
    monkeypatch.setenv("ANABRANCH_DEBUG", "1")
    assert main([]) == 1
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_file_keeps_the_name_as_it_is(kind: str, tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", plan(named(kind)), ("west",))
    assert (tmp_path / "plan.json").read_text(encoding="utf-8").replace("\n", "").isprintable()
    assert read_plan(tmp_path / "plan.json").plan == json.loads(json.dumps(plan_json(plan(named(kind)))))


def test_only_one_module_makes_text_for_terminals() -> None:
    found = [path.name for path in Path(report.__path__[0]).parent.rglob("*.py") if "rich.text" in path.read_text()]
    assert found == ["line.py"]
    consoles = [path.name for path in Path(report.__path__[0]).parent.rglob("*.py") if " Console(" in path.read_text()]
    assert consoles == []


def test_the_end_of_a_log_keeps_its_lines_below_its_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ["[12:00] \x1b[31mERROR\x1b[0m", "\tat java", "[/x]"]

    def fail(_: object) -> None:
        raise EnvironmentFault(Problem("AB303", "node 1", "ended; its log is below", "see it"), log)

    monkeypatch.setattr("reconciler.cli.main.get_command", fail)
    assert main([]) == 1
    assert capsys.readouterr().err.split("\n")[2:] == [
        r"    [12:00] \x1b[31mERROR\x1b[0m",
        "            at java",
        "    [/x]",
        "",
    ]
    with pytest.raises(EnvironmentFault) as caught:
        fail(None)
    assert str(caught.value).count("\n") == len(log)
    assert together([caught.value, caught.value]).log == (*log, *log)
