"""What `doctor` reports of pods before they are tried: the API server's refusals, Secrets, and room in quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import declare
from reconciler.model.planning.health import Check
from reconciler.operate.deployments.pods import pod_checks
from reconciler.operate.deployments.rendering import manifests_of
from tests.support.kubernetes.kubectl_stand_in import KubectlStandIn, limit_range, quota
from tests.support.programs import write_program

pytestmark = pytest.mark.slow

TOPOLOGY = """\
version: 1
name: shop
clusters:
  a:
    bootstrap: "127.0.0.1:1"
    datacenter: dc1
    security: {protocol: SASL_SSL, mechanism: PLAIN, username: m, password: "env:A_PASSWORD", ca: "file:/etc/k/ca.pem"}
  b: {bootstrap: "127.0.0.1:2", datacenter: dc2}
flows: [{from: a, to: b}]
datacenters:
  dc2:
    deploy:
      kind: kubernetes
      metrics: {}
      kubernetes:
        image: 127.0.0.1:1/anabranch:1.0.0
        namespace: mirrors
        context: dc2
        secret: kafka
        mounts: {/etc/k: kafka-files}
        pull-secret: images
"""
PLACE = "topology.yaml:13:7 (datacenters.dc2.deploy)"


class Asked:
    """A topology with pods, and what stands for kubectl.

    Args:
        folder: of both.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "topology.yaml"
        self.file.write_text(TOPOLOGY)
        self.kubectl = KubectlStandIn(folder / "bin")
        self.kubectl.secrets = {"kafka": ["A_PASSWORD", "OTHER"], "kafka-files": ["ca.pem"], "images": []}

    def checks(self) -> list[Check]:
        """Return the checks of the pods, without that of the image."""
        found = list(pod_checks(declare.load([self.file]), ["b"], self.kubectl.environ()))
        assert found[0].what == "image of dc2"
        assert {one.what for one in found[1:]} == {"pods of dc2"}
        assert all(one.level == "ok" or one.remedy.endswith(PLACE) for one in found[1:])
        return found[1:]

    def failures(self) -> list[str]:
        """Return what stands against the pods; then nothing is reported to be fine."""
        found = self.checks()
        assert any(one.level == "failure" for one in found)
        assert all(one.level != "ok" for one in found)
        return [one.found for one in found if one.level == "failure"]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_what_is_taken_is_told_once(asked: Asked) -> None:
    (check,) = asked.checks()
    assert check.level == "ok"
    assert check.found == (
        "context dc2 takes all 6 objects in namespace mirrors, has its Secrets, and has room for its pods"
    )


def test_nothing_is_changed_and_no_value_of_a_secret_is_printed(asked: Asked) -> None:
    asked.kubectl.rules = [quota({"pods": "9"})]
    assert [one.level for one in asked.checks()] == ["ok"]
    calls = asked.kubectl.calls()
    assert all("--context=dc2" in call and "--namespace=mirrors" in call for call in calls)
    for call in calls:
        verb = next(word for word in call if not word.startswith("--"))
        assert verb in ("config", "get", "apply")
        assert verb != "apply" or "--dry-run=server" in call
        if "secret" in call:
            (output,) = [word for word in call if word.startswith("--output")]
            assert "$key}}" in output
            assert "{{$value}}" not in output


def test_no_context_and_nobody_is_asked(asked: Asked) -> None:
    asked.file.write_text(TOPOLOGY.replace("        context: dc2\n", ""))
    (image,) = pod_checks(declare.load([asked.file]), ["b"], asked.kubectl.environ())
    assert image.what == "image of dc2"
    assert asked.kubectl.calls() == []


@pytest.mark.parametrize(
    ("printed", "found", "remedy"),
    [
        (
            'error: resource mapping not found for name: "x" namespace: "mirrors" from "STDIN": no matches for kind'
            ' "SparkApplication" in version "spark.apache.org/v1"',
            'no matches for kind "SparkApplication"',
            "install Apache's Spark operator",
        ),
        ('Error from server (NotFound): namespaces "mirrors" not found', 'namespaces "mirrors" not found', "make it"),
        (
            'Error from server (Forbidden): error when creating "STDIN": services "shop-dc2-metrics" is forbidden:'
            " exceeded quota: objects, requested: services=1, used: services=5, limited: services=5",
            'services "shop-dc2-metrics" is forbidden: exceeded quota: objects',
            "have it allowed",
        ),
        (
            'Error from server: error when creating "STDIN": admission webhook "policy.example" denied the request: no',
            'admission webhook "policy.example" denied the request: no',
            "have it allowed",
        ),
    ],
)
def test_what_the_api_server_refuses(printed: str, found: str, remedy: str, asked: Asked) -> None:
    asked.kubectl.refused = {
        "apply": [printed, "ensure CRDs are installed first"] if "mapping" in printed else [printed]
    }
    first = asked.checks()[0]
    assert first.level == "failure"
    assert found in first.found
    assert not first.found.startswith(("error", "Error"))
    assert remedy in first.remedy
    assert len(asked.kubectl.calls()) == 3, "what is refused is not asked about further"


def test_a_user_without_rights_gets_warnings_for_what_cannot_be_seen(asked: Asked) -> None:
    right = 'Error from server (Forbidden): {0} is forbidden: User "ci" cannot list resource "{0}" in API group ""'
    asked.kubectl.refused = {
        "apply": [right.format("configmaps")],
        "get secret": [right.format("secrets")],
        "get resourcequotas,limitranges": [right.format("resourcequotas"), right.format("limitranges")],
    }
    found = asked.checks()
    assert [one.level for one in found] == ["warning"] * 6 + ["ok"]
    assert found[0].found.startswith("whether it takes the objects cannot be seen: configmaps is forbidden")
    assert "room" not in found[-1].found
    assert "Secrets" not in found[-1].found


def test_warnings_of_the_api_server_are_passed_on(asked: Asked) -> None:
    asked.kubectl.warnings = {"apply": ['Warning: would violate PodSecurity "restricted:latest"']}
    warning, _ = asked.checks()
    assert warning.level == "warning"
    assert warning.found == 'the API server warns: would violate PodSecurity "restricted:latest"'


def test_secrets_and_keys_that_are_not_there(asked: Asked) -> None:
    asked.kubectl.secrets = {"kafka": ["OTHER"], "kafka-files": []}
    assert asked.failures() == [
        'secrets "images" not found',
        "Secret kafka has no A_PASSWORD",
        "Secret kafka-files has no ca.pem",
    ]


def test_a_quota_that_is_full(asked: Asked) -> None:
    asked.kubectl.rules = [
        quota({"requests.memory": "5Gi", "pods": "10"}, {"requests.memory": "2Gi", "pods": "1"}),
        limit_range(max={"cpu": "1"}),
    ]
    assert asked.failures() == [
        "a LimitRange allows a container 1 of cpu, and SparkApplication shop-dc2-replicate declares 2",
        "a LimitRange allows a container 1 of cpu, and Deployment shop-dc2-metrics declares no limit",
        "ResourceQuota compute leaves 3Gi of 5Gi requests.memory, and these pods need 4352Mi",
    ]


def test_what_runs_already_takes_no_further_room(asked: Asked) -> None:
    topology = declare.load([asked.file])
    asked.kubectl.rules = [quota({"requests.memory": "5Gi"}, {"requests.memory": "5Gi"})]
    objects = manifests_of(topology, topology.datacenters["dc2"]).objects
    asked.kubectl.objects = [*objects]
    assert [one.level for one in asked.checks()] == ["ok"]
    asked.kubectl.objects = [one for one in objects if one["kind"] == "SparkApplication"]
    assert asked.failures() == ["ResourceQuota compute leaves 0 of 5Gi requests.memory, and these pods need 256Mi more"]


@pytest.mark.parametrize(
    "broken", [quota({"memory": "lots"}), {"kind": "ResourceQuota"}, {"kind": "LimitRange", "spec": 7}]
)
def test_rules_that_cannot_be_read_are_a_warning(broken: dict[str, object], asked: Asked) -> None:
    asked.kubectl.rules = [broken]
    warning, _ = asked.checks()
    assert warning.level == "warning"
    assert warning.found.startswith("quotas of the namespace cannot be read")


def test_a_context_that_is_not_there(asked: Asked) -> None:
    asked.kubectl.contexts = {"other": "https://127.0.0.1:1"}
    assert asked.failures() == ["cannot locate context dc2"]


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (
            [
                'E1130 09:36:10.970173   30693 memcache.go:265] "Unhandled Error" err="no server API group list"',
                "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
            ],
            "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
        ),
        (
            ["error: You must be logged in to the server (Unauthorized)"],
            "You must be logged in to the server (Unauthorized)",
        ),
        ([], "kubectl ended with 1"),
    ],
)
def test_a_server_that_does_not_answer(printed: list[str], found: str, asked: Asked) -> None:
    asked.kubectl.refused = {"version": printed}
    assert asked.failures() == [f"https://127.0.0.1:6443 does not answer as an API server: {found}"]


def test_no_kubectl(asked: Asked, tmp_path: Path) -> None:
    found = list(pod_checks(declare.load([asked.file]), ["b"], {"PATH": str(tmp_path / "empty")}))
    assert [(one.level, one.found) for one in found[1:]] == [("failure", "kubectl is not on the PATH")]


def test_something_else_by_the_name_of_kubectl(asked: Asked) -> None:
    environ = asked.kubectl.environ()
    program = asked.kubectl.folder / "kubectl"
    write_program(program, program.read_text().replace("print(json.dumps({", "print('<html>', ({"))
    found = list(pod_checks(declare.load([asked.file]), ["b"], environ))
    assert found[-1].found == "kubectl printed no objects as JSON"


def test_a_server_that_may_not_be_connected_to(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.kubectl.contexts = {"dc2": "https://kubernetes.example:6443"}
    monkeypatch.setenv("ANABRANCH_ALLOWED_HOSTS", "127.0.0.1")
    (failure,) = asked.failures()
    assert "https://kubernetes.example:6443 may not be connected to from here" in failure
    assert len(asked.kubectl.calls()) == 1


def test_what_cannot_run_in_pods_is_told_as_render_tells_it(asked: Asked) -> None:
    asked.file.write_text(TOPOLOGY.replace("        mounts: {/etc/k: kafka-files}\n", ""))
    assert asked.failures() == ["/etc/k/ca.pem is needed, and /etc/k is in no kubernetes.mounts"]
    assert asked.kubectl.calls() == []
