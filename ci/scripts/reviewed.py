"""`python ci/scripts/reviewed.py --name NAME --commit SHA --branch BRANCH --out FILE`: fetch the reviewed plan.

The commit is what a merge made of its branch; the plan is the one that its pull request showed last, for its newest
commit. `anabranch apply --plan FILE` carries it out unless something has moved since. Exit codes: 0, or 1 where there
is no such plan: nothing may be applied then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gitops.api import ApiError
from gitops.forge import NotReviewed, Reviewed
from gitops.surroundings import forge, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="reviewed.py", description="Fetch the plan that was reviewed.")
    parser.add_argument("--name", required=True, help="the topology's name")
    parser.add_argument("--commit", required=True, help="the commit on the branch that was merged into")
    parser.add_argument("--branch", required=True, help="the branch that was merged into")
    parser.add_argument("--out", required=True, type=Path, help="where the plan file is written")
    parser.add_argument("--made-by", help="the workflow's file (GitHub) or the job (GitLab) that makes plans")
    asked = parser.parse_args(arguments)
    asked.out.unlink(missing_ok=True)
    try:
        found = forge().reviewed(asked.commit, asked.branch, asked.name, asked.made_by)
        _check(found, asked.name)
    except (ApiError, NotReviewed) as error:
        say(f"error: there is no reviewed plan of {asked.name}, so nothing may be applied: {error}")
        return 1
    asked.out.write_bytes(found.content)
    say(f"{asked.out}: the plan of pull request {found.pull} for its commit {found.commit}, made by run {found.run}")
    return 0


def _check(found: Reviewed, name: str) -> None:
    """See that the file is a plan of this topology.

    Raises:
        NotReviewed: it is not.
    """
    try:
        value = json.loads(found.content)
        declared = value["plan"]["topology"]
    except (ValueError, KeyError, TypeError):
        message = f"what run {found.run} kept is no plan file"
        raise NotReviewed(message) from None
    if declared != name:
        message = f"what run {found.run} kept is a plan of {declared}"
        raise NotReviewed(message)


if __name__ == "__main__":
    sys.exit(main())
