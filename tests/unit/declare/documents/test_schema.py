"""The schema file: complete, true to the model, to the built-in defaults and to the reference pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from reconciler.declare.documents import codes, resources, words
from reconciler.declare.documents.quantities import byte_count
from reconciler.declare.documents.settings import BUILT_IN, FIELDS, PATTERN_KINDS
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import MECHANISMS, PROTOCOLS
from reconciler.model.declared.clients import ROLES, Clients
from reconciler.model.declared.flow import FILLS, OFFSETS_MODES, ON_DATA_LOSS, ON_RECREATE
from reconciler.model.policies.types import POLICY_KINDS
from reconciler.records import codecs

SCHEMA: dict[str, Any] = json.loads(resources.schema_text())
DEFINITIONS: dict[str, Any] = SCHEMA["definitions"]
REFERENCE = Path(__file__).parents[4] / "docs" / "reference"


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = DEFINITIONS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the root, every definition and every property, with what it refers to put in its place."""
    yield "", SCHEMA
    for name, schema in DEFINITIONS.items():
        yield name, schema
    for owner, schema in (("", SCHEMA), *DEFINITIONS.items(), *DEFINITIONS["pattern"]["properties"].items()):
        for name, inner in schema.get("properties", {}).items():
            yield f"{owner}.{name}", resolved(inner)


def documented_fields() -> Iterator[str]:
    """Yield how the reference page calls each property."""
    flow_fields = {field: resolved(DEFINITIONS["flow"]["properties"][field]) for field in FIELDS}
    yield from SCHEMA["properties"]
    for name, schema in DEFINITIONS["cluster"]["properties"].items():
        yield f"clusters.*.{name}"
        for inner, known in resolved(schema).get("properties", {}).items():
            yield f"clusters.*.{name}.{inner}"
            yield from (f"clusters.*.{name}.{inner}.{key}" for key in resolved(known).get("properties", {}))
    for name, schema in DEFINITIONS["datacenter"]["properties"].items():
        inner = [f"datacenters.*.{name}.{key}" for key in resolved(schema).get("properties", {})]
        yield from inner or [f"datacenters.*.{name}"]
    for name, schema in DEFINITIONS["pattern"]["properties"].items():
        yield name
        yield from (f"{name}.{inner}" for inner in resolved(schema).get("properties", {}))
    yield from flow_fields


def test_it_is_a_draft_07_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(("name", "schema"), [pytest.param(*item, id=item[0] or "root") for item in described()])
def test_everything_has_a_title_a_description_and_valid_examples(name: str, schema: dict[str, Any]) -> None:
    assert schema["title"], name
    assert schema["description"].endswith("."), name
    assert schema["examples"], name
    validator = Draft7Validator({**schema, "definitions": DEFINITIONS})
    for example in schema["examples"]:
        assert list(validator.iter_errors(example)) == []


def test_no_mapping_takes_unknown_keys() -> None:
    mappings = [schema for _, schema in described() if schema.get("type") == "object"]
    assert len(mappings) >= 10
    assert all(schema["additionalProperties"] is False for schema in mappings)


def test_it_allows_what_the_model_has() -> None:
    security, policy = DEFINITIONS["security"]["properties"], DEFINITIONS["policy"]["properties"]
    assert tuple(security["protocol"]["enum"]) == PROTOCOLS
    assert tuple(security["mechanism"]["enum"]) == MECHANISMS
    assert tuple(policy["type"]["enum"]) == POLICY_KINDS
    assert tuple(DEFINITIONS["offsets"]["enum"]) == OFFSETS_MODES
    assert tuple(DEFINITIONS["fill"]["enum"]) == FILLS
    assert tuple(DEFINITIONS["compression"]["enum"]) == tuple(codecs.COMPRESSIONS)
    assert tuple(DEFINITIONS["on-data-loss"]["enum"]) == ON_DATA_LOSS
    assert tuple(DEFINITIONS["on-recreate"]["enum"]) == ON_RECREATE


def test_the_fields_of_a_flow_are_the_same_everywhere() -> None:
    fields = set(FIELDS)
    assert set(SCHEMA["properties"]["defaults"]["properties"]) == (fields - {"failed-over"}) | {"clients"}
    assert set(DEFINITIONS["flow"]["properties"]) == fields | {"from", "to", "name"}
    assert set(DEFINITIONS["pattern"]["properties"]) == fields | {"from", "to", "name", *PATTERN_KINDS}


def test_its_defaults_are_the_built_in_ones() -> None:
    for key, setting in BUILT_IN.items():
        owner, _, inner = key.partition(".")
        schema = DEFINITIONS[owner]["properties"][inner] if inner else DEFINITIONS[owner]
        assert schema.get("default") == setting.value, key


def test_it_has_the_settings_of_clients_that_the_model_has_and_their_defaults() -> None:
    assert set(DEFINITIONS["clients"]["properties"]) == set(ROLES)
    found: dict[tuple[str, str], object] = {}
    for role in ROLES:
        for key, schema in DEFINITIONS[role]["properties"].items():
            default = resolved(schema).get("default")
            found[role, key] = byte_count(default) if isinstance(default, str) else default
    assert found == {(one.role, one.key): one.value for one in Clients().effective()}


@pytest.mark.parametrize(
    "text",
    ["env:A", "env:_a1", "env:", "env:1", "env:A B", "file:/a", "file:/a b", "file:a", "file:/", "x", "", "ENV:A"],
)
def test_it_accepts_the_references_that_the_model_reads(text: str) -> None:
    try:
        Reference.parse(text)
        readable = True
    except ValueError:
        readable = False
    password = Draft7Validator(DEFINITIONS["security"]["properties"]["password"])
    assert password.is_valid(text) is readable


def test_nothing_planned_is_accepted_already() -> None:
    for path, schema in {
        (): SCHEMA,
        ("clusters", "a"): DEFINITIONS["cluster"],
        ("clusters", "a", "security"): DEFINITIONS["security"],
        ("defaults",): SCHEMA["properties"]["defaults"],
        ("replication", 0): DEFINITIONS["pattern"],
        ("flows", 0): DEFINITIONS["flow"],
        ("policy",): DEFINITIONS["policy"],
    }.items():
        assert not [key for key in schema["properties"] if words.is_planned_key(path, key)]


def test_the_reference_page_has_every_field_and_no_other() -> None:
    page = (REFERENCE / "topology.md").read_text(encoding="utf-8")
    # Those of fields have five columns; another one says what stands for keys of others.
    rows = [cells[1] for line in page.splitlines() if line.startswith("| `") and len(cells := line.split("|")) == 7]
    in_tables = [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]
    in_text = set(re.findall(r"`([a-z*.-]+)`", page))
    assert set(documented_fields()) <= in_text
    nested = {
        f"{owner}.{inner}"
        for owner in ("topics", "policy", "start", "configs")
        for inner in DEFINITIONS[owner]["properties"]
    }
    assert set(in_tables) <= set(documented_fields()) | nested
    assert nested <= set(in_tables)
    assert len(in_tables) == len(set(in_tables)) + 1  # `policy` stands at the top and among the fields of a flow


def test_the_reference_page_has_the_defaults() -> None:
    page = (REFERENCE / "topology.md").read_text(encoding="utf-8")
    rows = {cells[1].strip(" `"): cells[3] for line in page.splitlines() if len(cells := line.split("|")) == 7}
    for key, setting in BUILT_IN.items():
        if setting.value is not None:
            written = setting.value if isinstance(setting.value, str) else json.dumps(setting.value)
            assert rows[key].strip(" `") == written, key


def test_every_code_means_one_thing() -> None:
    known = [value for name, value in vars(codes).items() if name.isupper()]
    assert len(known) == len(set(known))


@pytest.mark.parametrize("path", resources.examples().values(), ids=lambda path: path.stem)
def test_an_example_leads_editors_to_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found is not None
    assert json.loads((path.parent / found[1]).read_text(encoding="utf-8")) == SCHEMA


def test_an_installed_package_has_its_own_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "reconciler"
    data = package / "_data"
    (data / "topology" / "schema").mkdir(parents=True)
    (data / "topology" / "examples").mkdir()
    (data / "stacks").mkdir()
    (data / "topology" / "schema" / "v1.json").write_text("{}", encoding="utf-8")
    (data / "topology" / "examples" / "fan-out.yaml").touch()
    monkeypatch.setattr(resources, "files", lambda _package: package)
    assert resources.schema_text() == "{}"
    assert resources.examples() == {"fan-out": data / "topology" / "examples" / "fan-out.yaml"}
    assert resources.stacks_folder() == data / "stacks"
    with pytest.raises(FileNotFoundError, match=r"Pulumi\.yaml is missing from this installation"):
        resources.locate("Pulumi.yaml")


def test_a_checkout_has_all_examples_and_the_stacks() -> None:
    assert list(resources.examples()) == ["active-active", "aggregation", "fan-out", "xdcr"]
    assert resources.stacks_folder().is_dir()
