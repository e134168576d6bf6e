"""`python ci/scripts/plan.py --name NAME --folder DIR FILE...`: check files and plan, and keep what was found.

The folder then has `plan.json`, for `anabranch apply --plan`, `whole.md` and `errors.txt` for people, `plan.md`, which
is no longer than a comment may be, and `outcome.json`, both for `comment.py`. Exit codes: 0 when there is a plan,
whatever is to do; else that of `anabranch`, or 1 where the files declare another topology.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from gitops.command import Ended, anabranch
from gitops.folder import write
from gitops.text import ROOM, Outcome, logged


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="plan.py", description="Check topology files and plan, for a pull request.")
    parser.add_argument("--name", required=True, help="the topology's name")
    parser.add_argument("--folder", required=True, type=Path, help="where what was found is kept; it is made anew")
    parser.add_argument("files", nargs="+", metavar="FILE", help="topology files")
    asked = parser.parse_args(arguments)
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    outcome = _outcome(asked.name, asked.files, asked.folder)
    write(asked.folder, outcome)
    sys.stdout.write(logged(outcome.markdown))
    return 0 if outcome.is_planned else outcome.code or 1


def _outcome(name: str, files: Sequence[str], folder: Path) -> Outcome:
    checked = _named(name, anabranch("validate", files, "--format", "json"))
    if checked.code:
        return Outcome(name, "validate", checked.code, "", checked.stderr)
    plan, whole = folder / "plan.json", folder / "whole.md"
    fits = ("--longest", str(ROOM), "--whole", str(whole))
    ended = anabranch("plan", files, "--format", "markdown", *fits, "--out", str(plan), "--detailed-exitcode")
    planned = Outcome(name, "plan", ended.code, ended.stdout, ended.stderr)
    if not planned.is_planned:
        plan.unlink(missing_ok=True)
        whole.unlink(missing_ok=True)
        return Outcome(name, "plan", ended.code, "", ended.stderr)
    whole.write_text(ended.hide(whole.read_text(encoding="utf-8")), encoding="utf-8")
    return planned


def _named(name: str, checked: Ended) -> Ended:
    """Return what a check found, or that the files are another topology's: its comments would get mixed up."""
    if checked.code:
        return checked
    declared = json.loads(checked.raw)["name"]
    if declared == name:
        return checked
    return Ended(1, "", f"the pipeline calls this topology {name}, and its files declare {declared}\n")


if __name__ == "__main__":
    sys.exit(main())
