"""What was converted is applied without a reader: where others changed the clusters meanwhile, it is planned again."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cli.migrate import running
from reconciler.model.base.errors import Problem, Refused


class Runs:
    """Answers of one `apply` after the other."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def __call__(self) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused(*codes: str) -> Refused:
    return Refused([Problem(code, "backup", "changed", "run it again") for code in codes])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_PAUSE", 0.0)


def test_it_is_planned_again_until_nothing_came_between() -> None:
    assert running._applied(Runs(refused("AB407", "AB407"), refused("AB407"), "applied")) == "applied"  # type: ignore[comparison-overlap]


def test_any_other_refusal_stays_one() -> None:
    with pytest.raises(Refused, match="AB401"):
        running._applied(Runs(refused("AB407", "AB401"), "applied"))


def test_what_changes_each_time_is_an_error_at_last() -> None:
    with pytest.raises(Refused, match="AB407"):
        running._applied(Runs(*[refused("AB407")] * 100))
