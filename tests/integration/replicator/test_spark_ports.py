"""What another user of this machine gets out of Spark's ports on loopback, where no secret is known: nothing.

Driver and block manager speak Spark's own protocol (`org.apache.spark.network.protocol`): a frame has its length in 8
bytes, a byte for the kind of message, and for a request 8 bytes of its number and 4 of its body's length.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext

from reconciler.model.declared.datacenter import Spark
from reconciler.replicator.spark.jobs import SparkJobs

SECONDS = 60
REQUEST, ANSWER, FAILURE = 3, 4, 5
OPEN = (("spark.authenticate", "false"), ("spark.network.crypto.enabled", "false"))


@contextmanager
def spark(folder: Path, *conf: tuple[str, str]) -> Iterator[SparkContext]:
    """Start Spark on this machine, and have it done something: there is a block to be had then."""
    jobs = SparkJobs(1, folder, print, Spark(conf=conf))
    jobs.open()
    try:
        jobs.start()
        assert jobs.run(str.upper, "done") == "DONE"
        assert jobs._context is not None
        yield jobs._context
    finally:
        jobs.stop()


def listening(context: SparkContext) -> tuple[int, set[int]]:
    """Return the port of the driver's RPC, and all others that its virtual machine listens on but Py4J's."""
    gateway = SparkContext._gateway
    assert gateway is not None
    machine = psutil.Process(gateway.proc.pid)
    found = {one.laddr.port for one in machine.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    rpc = int(context.getConf().get("spark.driver.port") or 0)
    assert rpc in found
    return rpc, found - {rpc, gateway.gateway_parameters.port}


def text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


def open_blocks() -> bytes:
    """Ask the block manager for the function of the job that ran (`OpenBlocks`)."""
    return b"\0" + text("app") + text("driver") + struct.pack(">I", 1) + text("broadcast_0_piece0")


def call(context: SparkContext, rpc: int) -> bytes:
    """Ask the driver's RPC whether it has an endpoint; what is asked is a serialized object, whatever its class is."""
    java = context._jvm
    assert java is not None
    stored = java.java.io.ByteArrayOutputStream()
    asked = getattr(java.org.apache.spark.rpc.netty, "RpcEndpointVerifier$CheckExistence")("MapOutputTracker")
    java.java.io.ObjectOutputStream(stored).writeObject(asked)
    host, name = (struct.pack(">H", len(one)) + one.encode() for one in ("127.0.0.1", "endpoint-verifier"))
    return b"\0\1" + host + struct.pack(">I", rpc) + name + bytes(stored.toByteArray())


def asked(port: int, body: bytes) -> tuple[int, bytes, bool]:
    """Send a request; return the kind of the answer, what it holds, and whether the connection is closed behind it."""
    frame = struct.pack(">BQI", REQUEST, 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), SECONDS) as peer:
        peer.sendall(struct.pack(">Q", 8 + len(frame)) + frame)
        (length,) = struct.unpack(">Q", received(peer, 8))
        answer = received(peer, length - 8)
        kind, number, _ = struct.unpack_from(">BQI", answer)
        assert number == 7
        peer.settimeout(1.0 if kind == ANSWER else SECONDS)
        try:
            is_closed = peer.recv(1) == b""
        except TimeoutError:
            is_closed = False
    return kind, answer[13:], is_closed


def received(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += (more := peer.recv(size - len(data)))
        assert more, "it was closed without an answer"
    return data


def test_whoever_has_no_secret_gets_nothing(tmp_path: Path) -> None:
    with spark(tmp_path) as context:
        rpc, others = listening(context)
        assert len(others) == 1, "that of the block manager"
        for port, body in ((rpc, call(context, rpc)), *((one, open_blocks()) for one in others)):
            kind, said, is_closed = asked(port, body)
            assert (kind, is_closed, b"Unknown challenge message" in said) == (FAILURE, True, True)
        assert context.getConf().get("spark.authenticate.secret") is None, "it is in no setting, and no command line"
        settings = {path.relative_to(tmp_path): path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert settings == {Path("local"): 0o700, Path("spark.log"): 0o600, Path("log4j2.properties"): 0o600}


def test_who_declares_otherwise_has_it_otherwise_and_then_everybody_is_answered(tmp_path: Path) -> None:
    with spark(tmp_path, *OPEN) as context:
        rpc, (manager,) = listening(context)
        kind, said, _ = asked(rpc, call(context, rpc))
        assert (kind, said[-1:]) == (ANSWER, b"\1")
        kind, said, _ = asked(manager, open_blocks())
        # A handle for a stream of one chunk.
        assert (kind, said[:1], said[-4:]) == (ANSWER, b"\3", b"\0\0\0\1")


@pytest.mark.parametrize("secret", ["spark.authenticate.secret", "spark.authenticate"])
def test_nothing_is_set_where_spark_runs_elsewhere(
    tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, str] = {}

    def started(conf: object) -> SparkContext:
        found.update(conf.getAll())  # type: ignore[attr-defined]
        message = "it is not started"
        raise RuntimeError(message)

    jobs = SparkJobs(1, tmp_path, print, Spark("spark://master:7077", ((secret, "theirs"),)))
    monkeypatch.setattr(jobs, "_started", started)
    jobs._open()
    told = {name: value for name, value in found.items() if name.startswith(("spark.authenticate", "spark.network"))}
    assert told == {secret: "theirs"}
