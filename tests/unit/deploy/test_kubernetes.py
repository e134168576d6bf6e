"""What stands against pods, what `render` does to folders, and the programs that run in pods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.deploy.kubernetes import run
from reconciler.deploy.kubernetes.names import label
from reconciler.model.base.errors import Refused
from reconciler.operate.deployments.rendering import HEADER, rendered
from tests.support.waiting import eventually
from tests.unit.declare.declaring import refused

pytestmark = pytest.mark.slow

DIFFERENT, USAGE = 3, 2
TOPOLOGY = """\
version: 1
name: shop
clusters:
  a: {{bootstrap: ["a:9092"], datacenter: dc1, security: {{protocol: SASL_SSL, mechanism: PLAIN,
       username: u, password: "env:A_PASSWORD", ca: "file:/etc/kafka/ca.pem"}}}}
  b: {{bootstrap: ["b:9092"], datacenter: dc2}}
flows: [{{from: a, to: b}}]
datacenters:
  dc2: {{deploy: {{kind: kubernetes{}}}}}
"""
WHOLE = "image: 'images.example/a:1', secret: kafka, mounts: {/etc/kafka: files}"


def written(folder: Path, fields: str, name: str = "shop.yaml") -> Path:
    file = folder / name
    file.write_text(TOPOLOGY.format(f", {fields}"))
    return file


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("kubernetes: {image: x, mounts: {/etc/kafka: f}}", "A_PASSWORD is needed, and no kubernetes.secret is named"),
        ("kubernetes: {image: x, secret: k}", "/etc/kafka/ca.pem is needed, and /etc/kafka is in no kubernetes.mounts"),
        (
            "kubernetes: {image: x, secret: k, mounts: {/etc/kafka: f, /etc/anabranch/topology/x: g}}",
            "/etc/anabranch/topology/x is where the topology files are",
        ),
    ],
)
def test_what_pods_would_lack_is_told_with_its_place(fields: str, said: str, tmp_path: Path) -> None:
    file = written(tmp_path, fields)
    with pytest.raises(Refused) as caught:
        rendered(load([file]))
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB770", f"{file}:9:17 (datacenters.dc2.deploy)")
    assert said in problem.message


def test_files_that_no_config_map_takes_are_told(tmp_path: Path) -> None:
    for name, padding, said in (
        ("my shop.yaml", "", "my shop.yaml is no name that a file in a ConfigMap can have"),
        ("run.py", "", "run.py is no name"),
        ("shop.yaml", f"# {'x' * 100}\n" * 10_300, "a ConfigMap 1048576 at most"),
    ):
        file = written(tmp_path, f"kubernetes: {{{WHOLE}}}", name)
        file.write_text(file.read_text() + padding)
        with pytest.raises(Refused, match=said):
            rendered(load([file]))


@pytest.mark.parametrize(
    ("fields", "path", "code", "said"),
    [
        ("", "", "AB114", "expected kubernetes with an image"),
        (f", folder: /x, kubernetes: {{{WHOLE}}}", ".folder", "AB104", "manifests are of no machine; found folder"),
        (f", host: m1, kubernetes: {{{WHOLE}}}", ".host", "AB104", "manifests are of no machine; found host"),
        (f", serve: {{tokens: ['read=env:X']}}, kubernetes: {{{WHOLE}}}", ".serve", "AB114", "tls-certificate and tls"),
        (f", standalone: {{}}, kubernetes: {{{WHOLE}}}", ".standalone", "AB104", "standalone is of kind standalone"),
    ],
)
def test_what_does_not_fit_is_told(fields: str, path: str, code: str, said: str, tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, TOPOLOGY.format(fields))
    assert problem.where.endswith(f"(datacenters.dc2.deploy{path})"), problem.where
    assert (problem.code, said in problem.message) == (code, True), problem.message


def test_names_become_labels_and_stay_apart() -> None:
    assert label("shop", "dc1") == "shop-dc1"
    odd = [label("shop", name) for name in ("DC_1", "dc_1", "dc.1", "dc-1", "x" * 60, "x" * 61, "é")]
    assert len(set(odd)) == len(odd)
    assert all(len(one) <= 40 and one.strip("-") == one and one.isascii() for one in odd), odd


def test_a_folder_is_written_checked_and_cleared_of_what_is_no_longer_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = written(tmp_path, f"metrics: {{}}, kubernetes: {{{WHOLE}}}"), tmp_path / "out"
    command = ["render", str(file), "--out", str(out)]
    assert main([*command, "--check"]) == DIFFERENT
    assert "dc2/replicate.yaml is missing" in capsys.readouterr().err
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    (out / "dc2" / "own.yaml").write_text("# ours\n")
    written(tmp_path, f"kubernetes: {{{WHOLE}, cpus: 1}}")
    assert main([*command, "--check"]) == DIFFERENT
    said = capsys.readouterr().err.splitlines()
    assert {"dc2/metrics.yaml is no longer made", "dc2/replicate.yaml differs"} <= set(said)
    assert main(command) == 0
    assert sorted(path.name for path in (out / "dc2").iterdir()) == [
        *("kustomization.yaml", "network-policy.yaml", "own.yaml", "replicate.yaml"),
        *("service-account.yaml", "topology.yaml"),
    ]


def test_a_file_of_others_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = written(tmp_path, f"kubernetes: {{{WHOLE}}}"), tmp_path / "out"
    (out / "dc2").mkdir(parents=True)
    (out / "dc2" / "replicate.yaml").write_text("kind: Other\n")
    assert main(["render", str(file), "--out", str(out)]) == 1
    assert "[AB771]" in capsys.readouterr().err
    assert sorted(path.name for path in (out / "dc2").iterdir()) == ["replicate.yaml"]
    assert (out / "dc2" / "replicate.yaml").read_text() == "kind: Other\n"


def test_without_a_folder_all_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, f"kubernetes: {{{WHOLE}}}")
    assert main(["render", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.count("\n---\n") == 3
    assert HEADER not in said
    assert "Kustomization" not in said


@pytest.mark.parametrize("options", [["--check"], ["--datacenter", "dc1"]])
def test_what_cannot_be_rendered_is_a_mistake_of_the_command_line(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, f"kubernetes: {{{WHOLE}}}")
    assert main(["render", str(file), *options]) == USAGE
    assert options[0] in capsys.readouterr().err or options == ["--check"]


def test_draining_ends_what_runs_in_order(tmp_path: Path) -> None:
    word = str(tmp_path / "run.py")
    ended = tmp_path / "ended"
    script = f"trap 'sleep 1; echo > {ended}; exit 0' TERM; echo > {tmp_path}/begun; while :; do sleep 0.1; done"
    process = subprocess.Popen(["sh", "-c", script, word])
    eventually("it has begun", (tmp_path / "begun").exists)
    drain = [sys.executable, "-m", "reconciler.deploy.kubernetes.drain"]
    waiting = subprocess.Popen([*drain, "60", word])
    # Else its end would not be seen: here it is no child of the drain.
    process.wait(60)
    assert waiting.wait(60) == 0
    assert ended.exists()
    assert subprocess.run([*drain, "60", word], check=False).returncode == 0


def test_draining_gives_up_in_time(tmp_path: Path) -> None:
    word = str(tmp_path / "run.py")
    script = f"trap '' TERM; echo > {tmp_path}/begun; while :; do sleep 0.1; done"
    process = subprocess.Popen(["sh", "-c", script, word])
    try:
        eventually("it has begun", (tmp_path / "begun").exists)
        drain = [sys.executable, "-m", "reconciler.deploy.kubernetes.drain", "0.5", word]
        assert subprocess.run(drain, check=False).returncode == 1
    finally:
        process.kill()
        process.wait()


def test_a_driver_runs_the_command_without_the_jvm_beside_it() -> None:
    environ = os.environ | {"PYSPARK_GATEWAY_PORT": "1", "PYSPARK_GATEWAY_SECRET": "x"}
    done = subprocess.run([sys.executable, run.__file__, "version"], capture_output=True, env=environ, check=False)
    assert (done.returncode, done.stdout.startswith(b"anabranch ")) == (0, True), done
    done = subprocess.run([sys.executable, run.__file__, "nothing"], capture_output=True, env=environ, check=False)
    assert done.returncode == USAGE
