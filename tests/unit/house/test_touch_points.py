"""Changes that users of such software ask for touch few files: what a change would name stands in few places.

Each name stands for all of its kind, and the files are those that a further one would be added to. A file that appears
in a list beside these would make the next change longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUFFIXES = {".py", ".json", ".md"}

SCHEMA = "topology/schema/v1.json"
FIELDS = "docs/reference/topology.md"


def files_with(*texts: str) -> set[str]:
    """Return the files of the product, of its schema and of its reference that hold one of some texts."""
    found = set()
    for top in ("reconciler", "stacks", "topology/schema", "docs/reference"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in SUFFIXES and any(text in path.read_text(encoding="utf-8") for text in texts):
                found.add(path.relative_to(ROOT).as_posix())
    return found


def code_with(*texts: str) -> set[str]:
    return {name for name in files_with(*texts) if name.endswith(".py")}


def test_a_policy_type_is_one_file_of_code_and_a_word_of_the_schema() -> None:
    # The way back of a flow, and a source of Mirus, are made of rules: uses of a type, and no places to add one to.
    uses = {"reconciler/failover/logs/reverse_flows.py", "reconciler/convert/mirus.py"}
    assert code_with('"rename"') - uses == {"reconciler/model/policies/types.py"}
    assert SCHEMA in files_with('"rename"')


def test_a_setting_that_copies_do_not_follow_is_one_file() -> None:
    setting = "follower.replication.throttled.replicas"
    assert code_with(setting) == {"reconciler/model/declared/config_rules.py"}


def test_a_level_of_a_codec_is_a_line_of_code_beside_schema_and_reference() -> None:
    # Journals have a codec of their own, which no declaration changes.
    assert code_with('"zstd"') - {"reconciler/state/journals/journal.py"} == {"reconciler/records/codecs.py"}
    assert SCHEMA in files_with('"zstd"')


def test_a_format_of_output_is_one_file_of_code() -> None:
    assert code_with('"yaml"') == {"reconciler/cli/formats.py"}


def test_a_mechanism_of_sasl_is_at_most_six_files() -> None:
    # Clusters of tests log in with it; the Pulumi provider has names of its own; the first file of `init` names one.
    assert code_with('"SCRAM-SHA-256"') <= {
        "reconciler/model/connection/security.py",
        "reconciler/embedded/cluster.py",
        "reconciler/embedded/settings.py",
        "stacks/providers.py",
    }
    assert {SCHEMA, FIELDS} <= files_with("SCRAM-SHA-256")


@pytest.mark.parametrize("field", ["key_password", "key-password"])
def test_a_field_of_security_is_four_files(field: str) -> None:
    # `convert` knows MirrorMaker 2's name of it, and the stacks give it to the provider.
    further = {"reconciler/declare/documents/mirrormaker.py", "reconciler/declare/checks/security.py"}
    further |= {"reconciler/convert/clusters.py", "stacks/preparing.py", "stacks/providers.py"}
    needed = {"reconciler/model/connection/security.py", "reconciler/state/confluent/tls.py", SCHEMA, FIELDS}
    assert files_with(field, f'"{field}"') - further <= needed
