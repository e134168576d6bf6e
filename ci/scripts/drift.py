"""`python ci/scripts/drift.py --name NAME FILE...`: keep one open issue about drift, and close it when there is none.

Exit codes: 0 when the clusters were looked at, with drift or without; that of `anabranch drift`, or 1, where it failed
or did not see every cluster: then no issue is touched; 1 where the forge failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gitops.api import ApiError
from gitops.command import Ended, anabranch
from gitops.keep import close_issue, keep_issue
from gitops.surroundings import forge, say, summarise
from gitops.text import drift_body, drift_title, marker

_CLEAN, _DRIFTED = 0, 3


class _Unfit(Exception):
    """What the command said is no whole answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="drift.py", description="Keep one open issue about drift.")
    parser.add_argument("--name", required=True, help="the topology's name")
    parser.add_argument("--label", default="anabranch-drift", help="of the issue (default: %(default)s)")
    parser.add_argument("--ignore", action="append", default=[], metavar="FIELD", help="leave a field out")
    parser.add_argument("files", nargs="+", metavar="FILE", help="topology files")
    asked = parser.parse_args(arguments)
    ignored = [word for field in asked.ignore for word in ("--ignore", field)]
    ended = anabranch("drift", asked.files, "--format", "json", "--detailed-exitcode", *ignored)
    try:
        found = _whole(ended, asked.name)
    except _Unfit as error:
        say(f"error: {error}; no issue was touched")
        return ended.code if ended.code not in (_CLEAN, _DRIFTED) else 1
    mark = marker("drift", asked.name)
    try:
        if found["clean"]:
            comment = "There is no drift any more: the clusters are as the last apply left them."
            say(close_issue(forge(), asked.label, mark, comment))
        else:
            drift = [{key: _shown(ended, value) for key, value in one.items()} for one in found["drift"]]
            title, body = drift_title(asked.name, found["drift"]), drift_body(asked.name, drift)
            summarise(f"### {title}\n\n{body}")
            say(keep_issue(forge(), asked.label, mark, title, body))
    except ApiError as error:
        say(f"error: the issue could not be kept: {error}")
        return 1
    return 0


def _shown(ended: Ended, value: str | None) -> str | None:
    return None if value is None else ended.hide(value)


def _whole(ended: Ended, name: str) -> Mapping[str, Any]:
    """Return what was found, if every cluster was looked at.

    Raises:
        _Unfit: the command failed, did not see everything, or its exit code and its words are at odds.
    """
    if ended.code not in (_CLEAN, _DRIFTED):
        message = f"anabranch drift ended with exit code {ended.code}"
        raise _Unfit(message)
    try:
        found = json.loads(ended.raw)
        declared, clean, drift, unseen = (found[key] for key in ("topology", "clean", "drift", "unreachable"))
    except (ValueError, KeyError, TypeError):
        message = f"anabranch drift ended with exit code {ended.code}, but said nothing that can be read"
        raise _Unfit(message) from None
    if declared != name:
        message = f"the pipeline calls this topology {name}, and its files declare {declared}"
        raise _Unfit(message)
    if unseen or clean is not (ended.code == _CLEAN) or clean is bool(drift):
        message = f"anabranch drift ended with exit code {ended.code}, and said clean: {json.dumps(clean)}"
        raise _Unfit(message)
    return dict(found)


if __name__ == "__main__":
    sys.exit(main())
