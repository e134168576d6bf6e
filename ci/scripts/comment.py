"""`python ci/scripts/comment.py --pull N --commit SHA --folder DIR`: show in a pull request what `plan.py` found.

There is one comment for each topology, and it is updated. Where the job may not comment, as in forks, the text goes
into the job's summary, and that is no failure. It is in `DIR/comment.md` as well. Exit codes: 0, or 1 where the forge
failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gitops.api import ApiError, NotPermitted
from gitops.folder import read
from gitops.keep import keep_comment
from gitops.surroundings import artifact_place, forge, say, summarise
from gitops.text import marker, plan_comment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="comment.py", description="Show a plan in a pull request.")
    parser.add_argument("--pull", required=True, type=int, help="number of the pull request or merge request")
    parser.add_argument("--commit", required=True, help="the newest commit of its branch")
    parser.add_argument("--folder", required=True, type=Path, help="what plan.py has written")
    asked = parser.parse_args(arguments)
    try:
        outcome = read(asked.folder)
    except OSError as error:
        say(f"there is nothing to show, as plan.py left nothing: {error}")
        return 1
    body = plan_comment(outcome, artifact_place(), asked.commit)
    (asked.folder / "comment.md").write_text(body, encoding="utf-8")
    try:
        say(keep_comment(forge(), asked.pull, marker("plan", outcome.name), body))
    except NotPermitted as error:
        say(f"not allowed to comment, so the plan is in the job's summary: {error}")
        summarise(body)
    except ApiError as error:
        say(f"error: no comment could be written, so the plan is in the job's summary: {error}")
        summarise(body)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
