"""Writes YAML: values that commands print, and a topology file's text with other addresses.

The rest of such a file is kept, comments, order and quotes: the demo puts its embedded clusters into an example so.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

_WIDTH = 120


class _Readable(SafeRepresenter):
    """Writes texts of several lines as such, unless they have characters that YAML must escape."""

    def represent_str(self, data: str) -> ScalarNode:
        is_plain = all(line.isprintable() for line in data.split("\n"))
        style = "|" if "\n" in data and is_plain else None
        found: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style=style)
        return found


_Readable.add_representer(str, _Readable.represent_str)


def yaml_text(value: object) -> str:
    """Return JSON's values as YAML in the block style, which reads as the same values."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Readable
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = False
    yaml.width = 2**20
    out = io.StringIO()
    # What JSON does not have, as tuples, is written as JSON would.
    yaml.dump(json.loads(json.dumps(value)), out)
    return out.getvalue()


def _keeping() -> YAML:
    """Return what reads and writes YAML with its comments, order and quotes."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    return yaml


def in_style(text: str) -> str:
    """Return a topology's text with our indentation, and without blanks at ends of lines or two blank lines in a row.

    Args:
        text: of a file that `declare` reads; comments, order and quotes stay.
    """
    yaml = _keeping()
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(yaml.load(text), out)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return "\n".join(kept).strip("\n") + "\n"


def with_bootstraps(text: str, bootstraps: Mapping[str, str]) -> str:
    """Return a valid topology's `text` with other bootstrap addresses and without `security`.

    Args:
        text: a topology file that `declare.load` accepts.
        bootstraps: `host:port[,host:port…]` by cluster alias; clusters that are not named stay as they are.
    """
    yaml = _keeping()
    document = yaml.load(text)
    for alias, bootstrap in bootstraps.items():
        cluster = document["clusters"][alias]
        cluster["bootstrap"] = bootstrap.split(",")
        cluster.pop("security", None)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()
