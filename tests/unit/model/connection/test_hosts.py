"""Hosts that may be connected to: bounded where commands run, and asked before a secret is looked up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.commands import MODULES
from reconciler.cli.helping import BELOW
from reconciler.cli.main import main
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection import hosts
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.datacenter import Spark
from reconciler.replicator.spark.engine import SparkEngine
from stacks.providers import check_login, provider_for

pytestmark = pytest.mark.slow

# Never set: whoever looks it up before the hosts are looked at ends with AB304.
SECRET = Reference("env", "ANABRANCH_TEST_NEVER_SET")
PASSWORD = Security("SASL_PLAINTEXT", "SCRAM-SHA-512", "u", SECRET)
OAUTH = OAuth(token_endpoint="https://login.evil/token?x=hunter2", client_id="c", client_secret=SECRET)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("B1.Example:9092", "b1.example"),
        ("b1.example.:9092", "b1.example"),
        ("10.0.0.7:9092", "10.0.0.7"),
        ("[2001:DB8::1]:9092", "2001:db8::1"),
        ("b1", "b1"),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert hosts.host_of(address) == host


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True),
        ("east.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.evil", False),
        ("127.0.0.1.evil", False),
        ("notlocalhost", False),
        ("", False),
    ],
)
def test_this_machine_is_told_from_others(host: str, is_here: bool) -> None:
    assert hosts.is_loopback(host) is is_here


@pytest.mark.parametrize(
    ("allowed", "address", "is_allowed"),
    [
        ("", "evil:9093", True),
        (" , ", "evil:9093", True),
        ("b1.example", "b1.example:9092", True),
        ("B1.example.", "b1.EXAMPLE:9092", True),
        ("b1.example", "xb1.example:9092", False),
        ("b1.example", "b1.example.evil:9092", False),
        ("*.example", "a.b1.example:9092", True),
        ("*.example", "example:9092", False),
        ("*.example", "evilexample:9092", False),
        ("*.example", "b1.example.evil:9092", False),
        ("a, b\nc", "c:1", True),
        ("10.0.0.0/8", "10.3.2.1:9092", True),
        ("10.0.0.0/8", "11.3.2.1:9092", False),
        ("10.0.0.0/8", "10.evil:9092", False),
        ("10.0.0.7", "10.0.0.7:9092", True),
        ("2001:db8::/32", "[2001:db8::1]:9092", True),
        ("[::1]", "[::1]:9092", True),
    ],
)
def test_patterns(allowed: str, address: str, is_allowed: bool) -> None:
    found = hosts.problem("cluster a", [address], environ={hosts.VARIABLE: allowed})
    assert (found is None) is is_allowed
    if found is not None:
        assert found.code == "AB309"
        assert found.message.startswith(f"{address} may not be connected to from here")


@pytest.mark.parametrize("pattern", ["*", "b*.example", "https://b1.example", "b1.example:9092", "*.", "a..b", "a/8"])
def test_what_is_no_pattern_allows_nothing(pattern: str) -> None:
    found = hosts.problem("cluster a", ["b1.example:9092"], environ={hosts.VARIABLE: f"b1.example,{pattern}"})
    assert found is not None
    assert (found.code, found.message.rpartition(" ")[2]) == ("AB309", pattern)


@pytest.fixture
def only_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hosts.VARIABLE, "*.example")


@pytest.mark.usefixtures("only_example")
@pytest.mark.parametrize("how", ["librdkafka", "kafka_python"])
def test_a_client_of_another_host_gets_no_settings_and_no_secret_is_looked_up(how: str) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        getattr(Cluster("a", ("b1.example:9092", "evil:9093"), security=PASSWORD), how)()
    (problem,) = caught.value.problems
    assert problem.code == "AB309"
    assert problem.message.startswith(
        "evil:9093 may not be connected to from here: ANABRANCH_ALLOWED_HOSTS allows *.example"
    )
    with pytest.raises(EnvironmentFault) as allowed:
        getattr(Cluster("a", ("b1.example:9092",), security=PASSWORD), how)()
    assert [one.code for one in allowed.value.problems] == ["AB304"]


@pytest.mark.usefixtures("only_example")
@pytest.mark.parametrize("how", ["token", "librdkafka", "kafka_python"])
def test_an_endpoint_at_another_host_is_asked_for_no_token(how: str) -> None:
    security = Security("SASL_SSL", "OAUTHBEARER", oauth=OAUTH)
    with pytest.raises(EnvironmentFault) as caught:
        getattr(Cluster("a", ("b1.example:9092",), security=security), how)()
    (problem,) = caught.value.problems
    assert problem.code == "AB309"
    assert problem.message.startswith("https://login.evil/token may not")
    assert "hunter2" not in str(problem)


@pytest.mark.usefixtures("only_example")
def test_a_spark_cluster_at_another_host_is_not_joined(tmp_path: Path) -> None:
    engine = SparkEngine(1, tmp_path, print, Spark("spark://s.example:7077,evil:7077"))
    engine.open()
    with pytest.raises(EnvironmentFault) as caught:
        engine.start()
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB309", "Spark cluster spark://s.example:7077,evil:7077")
    assert problem.message.startswith("evil:7077 may not")


@pytest.mark.usefixtures("only_example")
def test_pulumi_logs_in_nowhere_else() -> None:
    for login in (check_login, provider_for):
        with pytest.raises(EnvironmentFault) as caught:
            login(Cluster("a", ("evil:9093",), security=PASSWORD))
        assert [one.code for one in caught.value.problems] == ["AB309"]


@pytest.fixture
def evil() -> Iterator[tuple[int, list[object]]]:
    """Listen on a port; yield it, and who has connected."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, whom = server.accept()
                    came.append(whom)
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)


TOPOLOGY = """version: 1
name: shop
clusters:
  a:
    bootstrap: "localhost:{port}"
    security: {{protocol: SASL_PLAINTEXT, mechanism: SCRAM-SHA-512, username: u, password: "env:{secret}"}}
  b:
    bootstrap: "127.0.0.1:{port}"
    security: {{protocol: SASL_PLAINTEXT, mechanism: SCRAM-SHA-512, username: u, password: "env:{secret}"}}
flows: [{{from: a, to: b, topics: {{include: [x]}}}}]
"""
# What connects to nothing that a topology file names.
# What takes files of other tools, which are held against this below.
OF_OTHERS = {"connect-distributed", "connect-standalone", "mirror-maker", "mirror-maker2"}
OFFLINE = {
    "convert",
    "demo",
    "deployments",
    "docs",
    "explain",
    "flows",
    "fmt",
    "graph",
    "init",
    "render",
    "sandbox",
    "schema",
    "validate",
    "version",
}
UNTIL = ["--until-caught-up"]
FLOW = ["--flow", "a-b"]
AGREED = [*FLOW, "--yes"]
LINES = {
    "adopt": ["--yes"],
    "apply": ["--yes", "--provisioner", "direct"],
    "describe flow a-b": [],
    "describe topic x": [],
    "destroy": ["--yes"],
    "failback": AGREED,
    "failover": AGREED,
    "metrics": ["--listen", "127.0.0.1:0"],
    "offsets export": [*FLOW, "--out", "offsets.csv"],
    "offsets read": FLOW,
    "offsets translate": [*FLOW, "--offset", "x/0:0"],
    "offsets write": [*AGREED, "--topic", "x", "--to", "earliest"],
    "recreate": ["--yes", "--target", "a.x"],
    "release": [*AGREED, "--to", "mm2"],
    "replicate": UNTIL,
    "serve": ["--listen", "127.0.0.1:0"],
}
CONNECTING = sorted(({*MODULES} - {*BELOW} - OFFLINE - OF_OTHERS) | {name for name in LINES if " " in name})


@pytest.mark.usefixtures("only_example")
@pytest.mark.parametrize("command", CONNECTING)
def test_no_command_connects_to_another_host(
    command: str,
    evil: tuple[int, list[object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port, came = evil
    file = tmp_path / "shop.yaml"
    file.write_text(TOPOLOGY.format(port=port, secret=SECRET.name))
    monkeypatch.chdir(tmp_path)
    code = main([*command.split(), str(file), *LINES.get(command, [])])
    said = capsys.readouterr()
    assert (code, came) == (1, []), said
    assert f"{port} may not be connected to from here: {hosts.VARIABLE} allows *.example" in said.out + said.err
    assert SECRET.name not in said.out + said.err


@pytest.mark.usefixtures("only_example")
def test_no_file_of_another_tool_has_a_command_connect_to_another_host(
    evil: tuple[int, list[object]], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, came = evil
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mm2.properties").write_text(
        f"clusters=a,b\na.bootstrap.servers=localhost:{port}\nb.bootstrap.servers=127.0.0.1:{port}\na->b.enabled=true\n"
    )
    (tmp_path / "one.properties").write_text(f"bootstrap.servers=localhost:{port}\n")
    (tmp_path / "other.properties").write_text(f"bootstrap.servers=127.0.0.1:{port}\n")
    (tmp_path / "connector.properties").write_text(
        f"connector.class=MirrorSourceConnector\nsource.cluster.bootstrap.servers=127.0.0.1:{port}\n"
    )
    paths = {path.stem: str(path) for path in tmp_path.glob("*.properties")}
    lines = {
        "mirror-maker2": [paths["mm2"], *UNTIL],
        "mirror-maker": [
            *("--consumer.config", paths["one"], "--producer.config", paths["other"], "--include", "x", *UNTIL),
        ],
        "connect-standalone": [paths["one"], paths["connector"], *UNTIL],
        "connect-distributed": [paths["one"], "--listen", "127.0.0.1:0"],
    }
    assert lines.keys() == OF_OTHERS
    for command, line in lines.items():
        code = main([command, *line])
        said = capsys.readouterr()
        assert (code, came) == (1, []), said
        assert f"{port} may not be connected to from here" in said.out + said.err


@pytest.mark.parametrize("options", [[], ["--resolve"]])
def test_a_file_is_valid_whatever_this_machine_allows_unless_secrets_are_looked_up(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(TOPOLOGY.format(port=9, secret=SECRET.name))
    monkeypatch.setenv(hosts.VARIABLE, "127.0.0.1")
    code = main(["validate", str(file), *options])
    said = capsys.readouterr().err
    assert code == bool(options)
    # What is not allowed is not looked up; what is allowed is, and missing here.
    assert [word for word in ("AB309", "AB304") if word in said] == (["AB309", "AB304"] if options else [])


def test_the_listener_would_have_noticed(
    evil: tuple[int, list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, came = evil
    file = tmp_path / "shop.yaml"
    file.write_text(TOPOLOGY.format(port=port, secret=SECRET.name))
    monkeypatch.setenv(hosts.VARIABLE, "localhost, 127.0.0.0/8")
    monkeypatch.setenv(SECRET.name, "hunter2")
    assert main(["plan", str(file)]) == 6
    assert came
