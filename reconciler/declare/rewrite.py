"""Changes a topology file's text and keeps the rest of it: comments, order, quotes.

The demo puts the addresses of its embedded clusters into an example with it.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from ruamel.yaml import YAML


def with_bootstraps(text: str, bootstraps: Mapping[str, str]) -> str:
    """Return a valid topology's `text` with other bootstrap addresses and without `security`.

    Args:
        text: a topology file that `declare.load` accepts.
        bootstraps: `host:port[,host:port…]` by cluster alias; clusters that are not named stay as they are.
    """
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 120
    document = yaml.load(text)
    for alias, bootstrap in bootstraps.items():
        cluster = document["clusters"][alias]
        cluster["bootstrap"] = bootstrap.split(",")
        cluster.pop("security", None)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()
