"""The Pulumi program under mocks, resource by resource: names, inputs, providers, parents, protection and secrets."""

from __future__ import annotations

import inspect
import json
import logging
import runpy
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pulumi
import pulumi_kafka as kafka
import pytest
from ruamel.yaml import YAML

from reconciler.declare import load
from reconciler.model.acls.binding import Binding, ObservedBindings
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Kerberos, OAuth, Security
from reconciler.model.declared.clients import AdminSettings, Clients
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.observe.record import read_observed, write_observed
from reconciler.plan.copies.desired import desired_topics
from stacks import program
from stacks.handover import Handover, handed_over_in
from stacks.providers import DEPRECATED, check_login, provider_for
from tests.support.provision.declared import SECRET, Declared, declared_by
from tests.unit.plan.facts import EAST, WEST, cluster, record, topic

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "never-in-a-state-file"
DECLARATION = """\
version: 1
name: payments
clusters:
  us-east: {bootstrap: ["b1.use.example:9092"], datacenter: dc1}
  eu-west:
    bootstrap: ["b1.euw.example:9092", "b2.euw.example:9092"]
    datacenter: dc2
    security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: mirror, password: "env:EU_WEST_PASSWORD"}
defaults:
  topics: {include: [".*"]}
flows:
  - {from: us-east, to: eu-west}
"""
SOURCE = cluster(EAST, topic("orders", 6, configs={"retention.ms": "86400000"}), topic("users", 12))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a topology file, and clusters that were observed before."""
    (tmp_path / "payments.yaml").write_text(DECLARATION)
    monkeypatch.setenv("EU_WEST_PASSWORD", PASSWORD)
    for name in ("KAFKA_ENABLE_TLS", "KAFKA_SASL_USERNAME", "KAFKA_CA_CERT", "AWS_PROFILE"):
        monkeypatch.setenv(name, "of-another-cluster")
    observe(tmp_path, SOURCE, cluster(WEST))
    return tmp_path


def declaration(root: Path) -> Topology:
    return load((root / "payments.yaml",))


def observe(root: Path, *clusters: ObservedCluster) -> None:
    observed = {one.alias: one for one in clusters}
    write_observed(root / program.OBSERVED_FOLDER, declaration(root), observed, observed)


def run(
    start: Callable[[], object], stack: str = "dc2", settings: dict[str, str] | None = None
) -> dict[str, list[Declared]]:
    """Run a program; return what it declared by type."""
    values = {"topology": "payments.yaml"} | (settings or {})
    found: dict[str, list[Declared]] = {}
    for one in declared_by(start, stack, {f"anabranch:{key}": value for key, value in values.items()}):
        found.setdefault(one.type, []).append(one)
    return found


FLOW, PROVIDER, TOPIC = "anabranch:index:Flow", "pulumi:providers:kafka", "kafka:index/topic:Topic"
ACL = "kafka:index/acl:Acl"


def test_every_remote_topic_is_declared_with_all_its_settings(root: Path) -> None:
    found = run(lambda: program.run(root))
    observed = {EAST: SOURCE, WEST: cluster(WEST)}
    wanted = desired_topics(declaration(root), observed, [WEST])
    assert [one.name for one in found[TOPIC]] == ["eu-west/us-east.orders", "eu-west/us-east.users"]
    for one, topic_wanted in zip(found[TOPIC], wanted, strict=True):
        assert one.inputs == {
            "name": topic_wanted.name,
            "partitions": topic_wanted.partitions,
            "replicationFactor": topic_wanted.replication_factor,
            "config": topic_wanted.configs,
        }
    assert found[TOPIC][0].inputs["config"]["retention.ms"] == "86400000"


def test_acls_of_copies_are_declared_with_every_field(root: Path) -> None:
    readers = (
        Binding("topic", ResourcePattern("orders"), "User:alice", "READ"),
        Binding("topic", ResourcePattern("us", prefixed=True), "User:bob", "DESCRIBE_CONFIGS", "DENY", "10.0.0.1"),
    )
    seen = replace(SOURCE, acls=ObservedBindings("seen", frozenset(readers)))
    observe(root, seen, replace(cluster(WEST), acls=ObservedBindings("seen")))
    found = run(lambda: program.run(root))
    assert {one.name: one.inputs for one in found[ACL]} == {
        "eu-west/User:alice|*|Read|Allow|Topic|us-east.orders|Literal": {
            "aclResourceType": "Topic",
            "aclResourceName": "us-east.orders",
            "resourcePatternTypeFilter": "Literal",
            "aclPrincipal": "User:alice",
            "aclHost": "*",
            "aclOperation": "Read",
            "aclPermissionType": "Allow",
        },
        "eu-west/User:bob|10.0.0.1|DescribeConfigs|Deny|Topic|us-east.users|Literal": {
            "aclResourceType": "Topic",
            "aclResourceName": "us-east.users",
            "resourcePatternTypeFilter": "Literal",
            "aclPrincipal": "User:bob",
            "aclHost": "10.0.0.1",
            "aclOperation": "DescribeConfigs",
            "aclPermissionType": "Deny",
        },
    }
    known = set(inspect.signature(kafka.AclArgs.__init__).parameters) - {"self", "__self__"}
    assert {key.lower() for one in found[ACL] for key in one.inputs} == {name.replace("_", "") for name in known}
    (flow,), (provider,) = found[FLOW], found[PROVIDER]
    for one in found[ACL]:
        assert (one.parent, one.provider, one.protect) == (flow.urn, f"{provider.urn}::id-of-{WEST}", False)


def test_what_an_apply_hands_over_is_all_that_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders, users = desired_topics(declaration(root), {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    standing = [topic(one.name, one.partitions, 3, {**one.configs, "retention.ms": "1"}) for one in (orders, users)]
    owned = [record(one, declaration(root)) for one in (orders, users)]
    observed = {EAST: SOURCE, WEST: cluster(WEST, *standing, owned=owned)}
    (path,) = write_observed(root / "elsewhere", declaration(root), observed, [WEST])
    Handover(str(path), (WEST,), ("eu-west/us-east.orders",)).write(root / "handover.json")
    for name, value in handed_over_in(root / "handover.json").items():
        monkeypatch.setenv(name, value)

    first, second = run(lambda: program.run(root))[TOPIC]
    # One is imported just as it stands, the other is in the stack and gets what is desired.
    assert (first.import_id, first.inputs["config"]["retention.ms"]) == ("us-east.orders", "1")
    assert (second.import_id, second.inputs["config"]["retention.ms"]) == ("", users.configs["retention.ms"])

    path.write_text(path.read_text().replace(declaration(root).digest, "of-another"))
    message = failure(root)
    assert "AB181" in message
    assert "was written for another declaration" in message


def test_topics_are_protected_and_stand_below_their_flow(root: Path) -> None:
    found = run(lambda: program.run(root))
    (flow,) = found[FLOW]
    assert flow.name == "us-east-eu-west"
    for one in found[TOPIC]:
        assert one.protect
        assert one.parent == flow.urn


def test_each_cluster_has_one_explicit_provider(root: Path) -> None:
    found = run(lambda: program.run(root))
    (provider,) = found[PROVIDER]
    assert provider.name == WEST
    for one in found[TOPIC]:
        assert one.provider == f"{provider.urn}::id-of-{WEST}"


def test_no_field_of_a_provider_is_left_to_the_environment(root: Path) -> None:
    (provider,) = run(lambda: program.run(root))[PROVIDER]
    known = set(inspect.signature(kafka.ProviderArgs.__init__).parameters) - {"self", "__self__"} - DEPRECATED
    assert {key.lower() for key in provider.inputs} == {name.replace("_", "") for name in known}
    assert "of-another-cluster" not in json.dumps(provider.raw)
    assert provider.inputs["caCert"] == ""
    assert (provider.inputs["saslMechanism"], provider.inputs["saslUsername"]) == ("plain", "mirror")
    # What is no text travels to a provider as JSON.
    assert json.loads(provider.inputs["bootstrapServers"]) == ["b1.euw.example:9092", "b2.euw.example:9092"]
    assert (provider.inputs["tlsEnabled"], provider.inputs["skipTlsVerify"]) == ("false", "false")


def test_the_password_is_a_secret_and_stands_nowhere_else(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        found = run(lambda: program.run(root))
    (provider,) = found[PROVIDER]
    assert SECRET in provider.raw["saslPassword"].values()
    assert provider.inputs["saslPassword"] == PASSWORD
    others = [one.raw for kind in found.values() for one in kind if one is not provider]
    rest = {key: value for key, value in provider.raw.items() if key != "saslPassword"}
    assert PASSWORD not in json.dumps([others, rest]) + caplog.text
    assert PASSWORD not in (root / program.OBSERVED_FOLDER / "dc2.json").read_text()


def test_a_stack_declares_its_own_data_centre_only(root: Path) -> None:
    observe(root, cluster(EAST))
    found = run(lambda: program.run(root), stack="dc1")
    assert TOPIC not in found
    assert [one.name for one in found[PROVIDER]] == [EAST]


def test_the_data_centre_may_have_another_name_than_the_stack(root: Path) -> None:
    found = run(lambda: program.run(root), stack="prod", settings={"datacenter": "dc2"})
    assert len(found[TOPIC]) == 2


def test_several_files_are_one_topology(root: Path) -> None:
    text = (root / "payments.yaml").read_text()
    head, _, flows = text.partition("defaults:")
    (root / "clusters.yaml").write_text(head)
    (root / "flows.yaml").write_text("version: 1\ndefaults:" + flows)
    assert load((root / "clusters.yaml", root / "flows.yaml")).digest == declaration(root).digest
    found = run(lambda: program.run(root), settings={"topology": '["clusters.yaml", "flows.yaml"]'})
    assert len(found[TOPIC]) == 2


def test_a_topic_whose_source_is_gone_stays_declared(root: Path) -> None:
    orders, users = desired_topics(declaration(root), {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    standing = [topic(one.name, one.partitions, 3, one.configs) for one in (orders, users)]
    owned = [record(one, declaration(root)) for one in (orders, users)]
    observe(root, cluster(EAST, topic("orders")), cluster(WEST, *standing, owned=owned))
    names = [one.inputs["name"] for one in run(lambda: program.run(root))[TOPIC]]
    assert names == ["us-east.orders", "us-east.users"]


def failure(root: Path, stack: str = "dc2") -> str:
    with pytest.raises(pulumi.RunError) as raised:
        run(lambda: program.run(root), stack)
    return str(raised.value)


def test_a_source_that_cannot_be_read_fails_the_program(root: Path) -> None:
    (root / program.OBSERVED_FOLDER / "dc2.json").unlink()
    text = (root / "payments.yaml").read_text().replace("b1.use.example:9092", "127.0.0.1:1")
    (root / "payments.yaml").write_text(
        text.replace('["b1.euw.example:9092", "b2.euw.example:9092"]', '["127.0.0.1:2"]')
    )
    message = failure(root)
    assert "cluster us-east (127.0.0.1:1): does not answer" in message
    assert "cluster eu-west (127.0.0.1:2): does not answer" in message


def test_a_stack_that_is_no_data_centre_fails(root: Path) -> None:
    assert "no cluster of payments stands in data centre dc9; there are dc1, dc2" in failure(root, "dc9")


def test_a_damaged_record_of_observed_clusters_fails(root: Path) -> None:
    (root / program.OBSERVED_FOLDER / "dc2.json").write_text("{")
    assert "AB181" in failure(root)


def test_a_data_centre_that_was_not_observed_whole_is_not_written_down(tmp_path: Path, root: Path) -> None:
    observed = {EAST: SOURCE, WEST: cluster(WEST)}
    folder = tmp_path / "elsewhere"
    assert write_observed(folder, declaration(root), observed, [WEST]) == (folder / "dc2.json",)
    one_place = DECLARATION.replace("datacenter: dc2", "datacenter: dc1")
    (root / "payments.yaml").write_text(one_place)
    assert write_observed(folder, declaration(root), observed, [WEST]) == ()


def test_a_record_counts_for_an_hour(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / program.OBSERVED_FOLDER / "dc2.json"
    value = json.loads(path.read_text())
    for ago in (3500, -3500):
        path.write_text(json.dumps({**value, "time": value["time"] - ago}))
        assert len(run(lambda: program.run(root))[TOPIC]) == 2
    for ago in (3700, -3700):
        path.write_text(json.dumps({**value, "time": value["time"] - ago}))
        message = failure(root)
        assert "AB181" in message
        assert "minutes ago; 60 are allowed" in message
    # What an apply hands over is of this moment, whatever clocks say.
    Handover(str(path), (WEST,)).write(root / "handover.json")
    for name, text in handed_over_in(root / "handover.json").items():
        monkeypatch.setenv(name, text)
    assert len(run(lambda: program.run(root))[TOPIC]) == 2


def test_a_record_of_an_earlier_release_does_not_count(root: Path) -> None:
    path = root / program.OBSERVED_FOLDER / "dc2.json"
    value = json.loads(path.read_text())
    del value["time"]
    path.write_text(json.dumps({**value, "format": 6}))
    assert read_observed(path, declaration(root), [EAST, WEST]) is None


@pytest.mark.parametrize("missing", [EAST, WEST])
def test_a_record_without_a_cluster_that_is_needed_does_not_count(root: Path, missing: str) -> None:
    path = root / program.OBSERVED_FOLDER / "dc2.json"
    value = json.loads(path.read_text())
    del value["clusters"][missing]
    path.write_text(json.dumps(value))
    assert read_observed(path, declaration(root), [EAST, WEST]) is None


def test_a_record_for_another_declaration_does_not_count(root: Path) -> None:
    path = root / program.OBSERVED_FOLDER / "dc2.json"
    assert read_observed(path, declaration(root), [EAST, WEST]) == {EAST: SOURCE, WEST: cluster(WEST)}
    (root / "payments.yaml").write_text(DECLARATION.replace("name: payments", "name: other"))
    assert read_observed(path, declaration(root), [EAST, WEST]) is None


@pytest.mark.parametrize("settings", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_every_settings_file_names_a_topology_and_one_of_its_data_centres(settings: Path) -> None:
    values = YAML(typ="safe").load(settings)["config"]
    declared = load((ROOT / values["anabranch:topology"],))
    assert settings.name.split(".")[1] in {one.datacenter for one in declared.clusters.values()}


def test_what_pulumi_runs_is_this_program(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr(program, "run", started.append)
    monkeypatch.setattr(sys, "path", [*sys.path])
    runpy.run_path(str(ROOT / "stacks"), run_name="__main__")
    assert started == [ROOT]
    assert (ROOT / "Pulumi.yaml").read_text().splitlines()[-2:] == ["main: stacks", "stackConfigDir: stacks"]


def test_the_wheel_holds_the_whole_program() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    program_files = {f"stacks/{path.name}" for path in (ROOT / "stacks").glob("*.py")}
    assert {name for name in included if name.startswith("stacks/") and name.endswith(".py")} == program_files
    assert all(included[name] == f"reconciler/_data/{name}" for name in [*program_files, "Pulumi.yaml"])


def test_a_provider_gets_what_the_cluster_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("ca", "certificate", "key")
    for name in names:
        (tmp_path / name).write_text(f"PEM of {name}")
    ca, certificate, key = (Reference("file", str(tmp_path / name)) for name in names)
    monkeypatch.setenv("CLIENT_SECRET", PASSWORD)
    oauth = OAuth(None, "https://login.example/token", "mirror", Reference("env", "CLIENT_SECRET"), "kafka more")
    security = Security("SASL_SSL", "OAUTHBEARER", ca=ca, certificate=certificate, key=key, oauth=oauth)
    patient = Clients(admin=AdminSettings(request_timeout_ms=240_500))
    (provider,) = run(lambda: provider_for(Cluster(WEST, ("b1:9092",), security=security, clients=patient)))[PROVIDER]
    inputs = provider.inputs
    assert inputs["timeout"] == "241"
    assert (inputs["tlsEnabled"], inputs["caCert"], inputs["clientCert"]) == ("true", "PEM of ca", "PEM of certificate")
    assert SECRET in provider.raw["clientKey"].values()
    assert (inputs["saslMechanism"], inputs["saslTokenUrl"]) == ("oauthbearer", "https://login.example/token")
    assert (inputs["saslUsername"], inputs["saslPassword"]) == ("mirror", PASSWORD)
    assert json.loads(inputs["saslOauthScopes"]) == ["kafka", "more"]


def test_a_key_that_a_provider_cannot_decrypt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    security = Security(
        "SSL", key=Reference("file", str(key)), key_password=Reference("env", "KEY_PASSWORD"), certificate=None
    )
    one = Cluster(WEST, ("b1:9092",), security=security)
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHs\n-----END ENCRYPTED PRIVATE KEY-----\n")
    with pytest.raises(EnvironmentFault, match=r"PKCS#8.*--provisioner direct.*AB306"):
        check_login(one)
    for header in ("PRIVATE KEY", "RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"):
        key.write_text(f"-----BEGIN {header}")
        check_login(one)


@pytest.mark.parametrize(
    "security",
    [
        Security("SASL_SSL", "OAUTHBEARER", oauth=OAuth(Reference("file", "/token"))),
        Security("SASL_SSL", "GSSAPI", kerberos=Kerberos("mirror")),
        Security("SSL", verify_hostname=False),
        Security("SSL", tls_protocols=("TLSv1.3",)),
        Security("SSL", ciphers=("ECDHE-RSA-AES256-GCM-SHA384",)),
    ],
)
def test_logins_that_a_provider_does_not_have(security: Security) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        provider_for(Cluster(WEST, ("b1:9092",), security=security))
    assert [problem.code for problem in caught.value.problems] == ["AB306"]


def test_processes_are_declared_beside_what_is_on_clusters(root: Path) -> None:
    deployed = "datacenters:\n  dc2: {deploy: {kind: local, folder: /var/lib/dc2, metrics: {}}}\n"
    (root / "payments.yaml").write_text(DECLARATION + deployed)
    observe(root, SOURCE, cluster(WEST))
    found = {one.name: one.inputs for one in run(lambda: program.run(root))["anabranch:index:Process"]}
    assert sorted(found) == ["metrics", "replicate"]
    assert found["replicate"]["command"] == "replicate --clusters eu-west --wait=forever"
