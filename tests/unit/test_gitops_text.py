"""What is too long for a comment is cut so that what matters stays and everything that was opened is closed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitops.text import LIMIT, Outcome, fit, plan_comment

SUMMARY = "### payments: 4000 to add, 0 to change, 0 to delete"
WHERE = "[the run's artifacts](https://github.example/acme/streams/actions/runs/77)"
SETTINGS = "<details><summary>Settings of 4000 new topics</summary>"


def commented(rest: str, code: int = 3, errors: str = "") -> str:
    return plan_comment(Outcome("payments", "plan", code, f"{SUMMARY}\n{rest}\n", errors), WHERE, "0123456789abcdef")


def balanced(text: str) -> bool:
    return text.count("<details>") == text.count("</details>")


def test_a_plan_that_just_fits_is_whole_and_one_character_more_is_cut() -> None:
    room = LIMIT - 1 - len(commented(""))
    row = "| + | `a` |\n"
    rest = row * (room // len(row))
    rest += "x" * (room - len(rest))
    whole = commented(rest)
    assert len(whole) == LIMIT - 1
    assert rest in whole
    assert "left out" not in whole
    cut = commented(rest + "y")
    assert len(cut) < LIMIT
    assert "left out" in cut
    assert balanced(whole)
    assert balanced(cut)


def test_a_cut_plan_keeps_its_summary_says_where_the_whole_is_and_closes_what_was_open() -> None:
    rows = [
        f"| `us-east.topic-{number}` | `retention.ms` | `604800000` | as at the source |" for number in range(4_000)
    ]
    text = commented("\n".join(["#### eu-west", "", SETTINGS, "", *rows, "", "</details>", "", "- flow at the end"]))
    assert LIMIT - 200 < len(text) < LIMIT
    assert text.splitlines()[:2] == ["<!-- anabranch plan payments -->", SUMMARY]
    assert text.count("<details>") == text.count("</details>") == 2
    kept = text.count("\n| `us-east.topic-")
    assert kept > 500
    assert f"{4_000 - kept + 4} lines of the plan are left out here. The whole plan: {WHERE}." in text
    # The note stands behind both closings, or it would be folded away.
    assert text.index("are left out") > text.rindex("</details>")
    assert "Planned for commit 0123456789ab" in text
    assert "- flow at the end" not in text


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
