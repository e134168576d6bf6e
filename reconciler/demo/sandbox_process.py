"""The process that holds a sandbox: `python -m reconciler.demo.sandbox_process PATTERN FILE [--mm2]`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import NoReturn

from confluent_kafka import Consumer

from reconciler.declare.rewrite import in_style
from reconciler.demo.orders import Shop
from reconciler.demo.sandbox import GROUP, Sandbox, held, record
from reconciler.demo.story import Story
from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.embedded.launch import start_child
from reconciler.embedded.settings import logging_properties
from reconciler.model.base.errors import AnabranchError
from reconciler.model.base.files import write_private
from reconciler.model.declared.topology import Topology

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_READ = "orders"
_POLL = 1.0
_END_SECONDS = 30.0


def main(pattern: str, file: Path, *, with_mirror_maker: bool) -> None:
    """Hold a sandbox until SIGTERM.

    Raises:
        AnabranchError: Java, the jars, a broker or ports are missing.
        FileExistsError: the file is there already.
    """
    with held() as is_free:
        if not is_free:
            sys.exit("another sandbox is up")
        with contextlib.ExitStack() as stack:
            story = stack.enter_context(Story(pattern))
            story.start_clusters()
            shops = story.open_shops()
            with file.open("x", encoding="utf-8") as out:
                out.write(_to_edit(story.file.read_text(encoding="utf-8")))
            stack.enter_context(_reading(next(shop for shop in shops if _READ in shop.topics)))
            properties = file.with_name(f"{file.stem}.mm2.properties") if with_mirror_maker else None
            pid = 0
            if properties is not None:
                pid = stack.enter_context(_mirror_maker(story.topology, properties, story.log.with_name("mm2.log")))
            write_private(record(), Sandbox(os.getpid(), file, properties, pid).text())
            stack.callback(record().unlink, missing_ok=True)
            while True:
                signal.pause()


def _to_edit(text: str) -> str:
    """Return the topology's text in our style, without the line that names a schema beside the examples."""
    return in_style(text.partition("#\n")[2] if text.startswith("# yaml-language-server") else text)


@contextlib.contextmanager
def _reading(shop: Shop) -> Iterator[None]:
    """Read a shop's orders meanwhile, as an application that commits what it has read."""
    stopping = threading.Event()
    servers = ",".join(map(str, shop.cluster.addresses))
    settings = {"bootstrap.servers": servers, "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": "2"}

    thread = threading.Thread(target=_read, args=[settings, stopping], name="reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _read(settings: Mapping[str, str], stopping: threading.Event) -> None:
    """Read orders until that is to end.

    Raises:
        KafkaException: the consumer cannot be made.
    """
    consumer = Consumer(dict(settings))
    try:
        consumer.subscribe([_READ])
        while not stopping.is_set():
            consumer.poll(_POLL)
    finally:
        consumer.close()


@contextlib.contextmanager
def _mirror_maker(topology: Topology, properties: Path, log: Path) -> Iterator[int]:
    """Run MirrorMaker 2 on the flows of a topology meanwhile, and yield its process' id."""
    with properties.open("x", encoding="utf-8") as out:
        out.write(mirror_maker_properties(topology))
    logging = log.with_name("log4j2.properties")
    logging.write_text(logging_properties(), encoding="utf-8")
    java = [str(java_executable()), "-Xmx512m", f"-Dlog4j2.configurationFile={logging}"]
    process = start_child([*java, "-cp", class_path(fetch_kafka("connect-mirror")), _MAIN, str(properties)], log)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def mirror_maker_properties(topology: Topology) -> str:
    """Return the configuration with which MirrorMaker 2 copies what a topology declares; clusters have one node."""
    lines = ["# What MirrorMaker 2 copies in the sandbox, until `anabranch sandbox down`."]
    lines.append(f"clusters = {', '.join(topology.aliases)}")
    lines += [
        f"{one.alias}.bootstrap.servers = {','.join(map(str, one.addresses))}" for one in topology.clusters.values()
    ]
    for flow in topology.flows:
        about = f"{flow.source}->{flow.target}"
        lines += [f"{about}.enabled = true", f"{about}.topics = {','.join(map(str, flow.topics.include))}"]
        lines += [f"{about}.topics.exclude = {','.join(map(str, flow.topics.exclude))}"] if flow.topics.exclude else []
    internal = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
    storage = ("config.storage", "offset.storage", "status.storage")
    lines += ["replication.factor = 1", *(f"{name}.replication.factor = 1" for name in (*internal, *storage))]
    return "".join(f"{line}\n" for line in lines)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        main(sys.argv[1], Path(sys.argv[2]), with_mirror_maker="--mm2" in sys.argv[3:])
    except AnabranchError as error:
        sys.exit("\n".join([*map(str, error.problems), *error.log]))
