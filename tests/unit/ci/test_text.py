"""What is too long for a comment is cut so that what matters stays and everything that was opened is closed."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # rich brings it

from gitops.text import LIMIT, Outcome, drift_body, fit, logged, marker, plan_comment, shown
from tests.support.hostile.names import KINDS, named

SUMMARY = "### payments: 4000 to add, 0 to change, 0 to delete"
WHERE = "[the run's artifacts](https://github.example/acme/streams/actions/runs/77)"
SETTINGS = "<details><summary>Settings of 4000 new topics</summary>"


def commented(rest: str, code: int = 3, errors: str = "") -> str:
    return plan_comment(Outcome("payments", "plan", code, f"{SUMMARY}\n{rest}\n", errors), WHERE, "0123456789abcdef")


def balanced(text: str) -> bool:
    return text.count("<details>") == text.count("</details>")


def test_a_plan_that_just_fits_is_whole_and_one_character_more_is_cut() -> None:
    room = LIMIT - 1 - len(commented("#### New"))
    row = "- `+` `a`\n"
    rest = row * (room // len(row) - 1)
    rest = f"#### New\n{rest}{'x' * (room - len(rest) - 1)}"
    whole = commented(rest)
    assert len(whole) == LIMIT - 1
    assert rest in whole
    assert "left out" not in whole
    cut = commented(rest + "y")
    assert len(cut) < LIMIT
    assert "left out" in cut


def test_a_plan_that_is_too_long_loses_sections_from_the_end_and_names_them() -> None:
    """An older command knows no bound, and one that does keeps to it."""
    sections = [
        f"#### {title}\n\n" + "- `us-east.orders`\n" * 1_500 for title in ("Deleted: 1,500 topics", "b", "New: 3")
    ]
    text = commented("\n".join(sections))
    assert len(text) < LIMIT
    assert text.splitlines()[:2] == ["<!-- anabranch plan payments -->", SUMMARY]
    assert text.count("- `us-east.orders`\n") == 3_000
    assert f"\n\n**Left out here: New: 3.** The whole plan: {WHERE}.\n\nPlanned for commit 0123456789ab" in text
    four = commented("\n".join([*sections, "#### c\n"]))
    assert "**Left out here: New: 3; c.**" in four


def test_what_one_section_alone_has_too_much_is_cut_at_a_line_and_counted() -> None:
    rows = [f"- `us-east.topic-{number}` deleted, with all records" for number in range(4_000)]
    folded = ["<details><summary>the 4,000 topics</summary>", "", *rows, "", "</details>", "", "#### New", "- the end"]
    text = commented("\n".join(["#### Deleted", "", *folded]))
    assert LIMIT - 200 < len(text) < LIMIT
    assert text.count("<details>") == text.count("</details>") == 1
    kept = text.count("\n- `us-east.topic-")
    assert kept > 500
    assert f"{4_000 - kept + 5} lines are left out here. The whole plan: {WHERE}." in text
    # The note stands behind the closing, or it would be folded away.
    assert text.index("are left out") > text.rindex("</details>")
    assert "- the end" not in text


def test_a_cut_right_before_a_closing_tag_leaves_room_for_it() -> None:
    note = "{} left"
    opened = "<details><summary>a</summary>\n\n"
    for size in range(LIMIT - 200, LIMIT):
        middle = opened + "x" * (size // 2) + "\n" + "y" * (size - size // 2) + "\n\n</details>\n\nend"
        text = fit("head\n", middle, "", "\nfoot", note)
        assert len(text) < LIMIT, size
        assert balanced(text), size
        assert (text.startswith("head\n"), text.endswith("\nfoot")) == (True, True)


def test_errors_are_cut_inside_of_their_block() -> None:
    many = "\n".join(f"payments.yaml:{line}: wrong [AB104]" for line in range(5_000))
    text = commented("", code=1, errors=many)
    assert len(text) < LIMIT
    assert text.count("```") == 2
    assert text.index("are left out") > text.rindex("```")
    assert "payments.yaml:0: wrong" in text
    endless = commented("", code=1, errors="x" * 200_000)
    assert LIMIT - 200 < len(endless) < LIMIT
    assert endless.count("```") == 2


LINES = st.lists(st.sampled_from([SETTINGS, "</details>", "", "| row |" * 400, "- a note" * 90]), max_size=200)


@given(LINES, st.integers(0, 30_000))
def test_every_text_fits_and_closes_what_it_opened(lines: list[str], longer: int) -> None:
    balance = 0
    rest = []
    for line in lines:
        balance += (line == SETTINGS) - (line == "</details>")
        if balance < 0:
            balance = 0
            continue
        rest.append(line)
    rest += ["</details>"] * balance
    text = commented("\n".join(rest) + "\n" + "x" * longer)
    assert len(text) < LIMIT
    assert SUMMARY in text
    assert balanced(text)


# --- what others have chosen ------------------------------------------------------------------------------------------

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# Of an older version, which let some of it pass.
OLD = "### payments: 1 to add\n\n| + | `{0}` | {0} |\n\n- ⚠ {0}: `@team` stays\n"


def words(text: str) -> str:
    """Return what a forge shows outside of code, where it looks for names and numbers."""
    page = MARKDOWN.render(text)
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<(code|pre)\b.*?</\1>", "", page, flags=re.DOTALL)))


@pytest.mark.parametrize("kind", KINDS)
def test_an_issue_calls_nobody_and_is_the_same_table(kind: str) -> None:
    name = named(kind)
    keys = ("cluster", "topic", "field", "desired", "found", "remedy")
    body = drift_body("payments", [dict.fromkeys(keys, name) | {"kind": "changed"}] * 2)
    lines = body.splitlines()
    assert lines[0] == marker("drift", "payments")
    assert all(line.isprintable() for line in body.split("\n"))
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert not re.search(r"[@#!&$%~]\w|\bGH-\d|://|www\.|:smile:", words(body))
    types = {one.type for token in MARKDOWN.parse(body) for one in token.children or ()}
    assert types <= {"text", "text_special", "code_inline", "html_inline", "softbreak"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_comment_calls_nobody_and_hides_nothing(kind: str) -> None:
    # A name of one line, as an older version might have written it down.
    name = shown(named(kind), 200)
    body = plan_comment(Outcome("payments", "plan", 3, OLD.format(name), ""), WHERE, "0123456789abcdef")
    assert body.splitlines()[0] == marker("plan", "payments")
    assert all(line.isprintable() for line in body.split("\n"))
    assert not re.search(r"@\w", words(body.partition("\n")[2]))
    assert "`" in name or "`@team` stays" in body, "in code nobody is called"
    comments = re.findall(r"<!--", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", body))
    assert len(comments) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_stays_inside_of_its_block(kind: str) -> None:
    body = commented("", code=1, errors=f"payments.yaml:1: {named(kind)}\n    → mend it\n")
    fences = [token for token in MARKDOWN.parse(body) if token.type == "fence"]
    assert len(fences) == 1
    assert "payments.yaml:1: " in fences[0].content
    assert all(line.isprintable() for line in body.split("\n"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_of_a_log_is_no_command_to_the_runner(kind: str) -> None:
    for begin in ("::add-mask::", "  ::stop-commands::x", "##[set-output name=x]", "a ##[group]"):
        found = logged(f"{begin}{named(kind)}\n")
        assert not [line for line in found.split("\n") if line.lstrip().startswith("::") or "##[" in line]
        assert all(line.isprintable() for line in found.split("\n"))
    assert logged("payments.yaml:3:1: wrong\n    → mend it\n") == "payments.yaml:3:1: wrong\n    → mend it\n"
