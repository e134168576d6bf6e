"""Writes `reconciler/embedded/jars.sha256` anew, after a change of Kafka's version.

It takes what comes, from the repository that Ivy is configured for: look at what changed before you commit it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from reconciler.embedded.jars import KAFKA, KAFKA_VERSION, KNOWN, MIRROR_MAKER_VERSION, fetch_jars

_SAYS = """\
# SHA-256 of every jar of Kafka {} and MirrorMaker 2 {}, for demo, tests and bench.
# Made by `python -m release jars`.
"""


def make() -> None:
    """Fetch everything once more, into an empty cache, and write what it is.

    Raises:
        EnvironmentFault: AB301 without Java, AB302 when a fetch fails.
    """
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ANABRANCH_CACHE"] = cache
        fetched = [path for what in KAFKA for path in fetch_jars(what, KAFKA[what], None).iterdir()]
        sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in fetched}
    text = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    Path(KNOWN).write_text(_SAYS.format(KAFKA_VERSION, MIRROR_MAKER_VERSION) + text, encoding="utf-8")
