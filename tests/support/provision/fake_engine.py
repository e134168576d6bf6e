"""What the stand-in for Pulumi does in `preview` and `up`: run the program, compare with the state, change the cluster.

Apart from `fake_pulumi`, which starts it: it needs the libraries of Pulumi and Kafka, and every other command is quick
without them.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import runpy
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulumi.runtime import get_root_resource
from pulumi.runtime.proto import events_pb2, events_pb2_grpc
from ruamel.yaml import YAML

from tests.support.provision.declared import SECRET, Declared, declared_by
from tests.support.provision.fake_kafka import Cluster, Refused
from tests.support.provision.fake_pulumi import HOME, settings_file

TOPIC, ACL, PROVIDER = "kafka:index/topic:Topic", "kafka:index/acl:Acl", "pulumi:providers:kafka"
STACK = "pulumi:pulumi:Stack"
STOP_SECONDS = 30


class EventLog:
    """Where events go: a file, or a server, as `--event-log` says."""

    def __init__(self, place: str | None) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._file = Path(place) if place and not place.startswith("tcp://") else None
        self._sender: threading.Thread | None = None
        if place and self._file is None:
            self._sender = threading.Thread(target=self._send, args=(place.removeprefix("tcp://"),))
            self._sender.start()

    def tell(self, **event: Any) -> None:
        line = json.dumps({"sequence": 0, "timestamp": 0, **event})
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(line + "\n")
        elif self._sender is not None:
            self._queue.put(line)

    def close(self) -> None:
        self.tell(cancelEvent={})
        self._queue.put(None)
        if self._sender is not None:
            self._sender.join()

    def _send(self, address: str) -> None:
        grpc: Any = importlib.import_module("grpc")

        def requests() -> Iterator[Any]:
            while (line := self._queue.get()) is not None:
                yield events_pb2.EventRequest(event=line)

        with grpc.insecure_channel(address) as channel:
            events_pb2_grpc.EventsStub(channel).StreamEvents(requests())


class Update:
    """One `preview` or `up`."""

    def __init__(self, stack: str, is_preview: bool, place: str | None) -> None:
        self.stack, self.planning = stack, is_preview
        self.log = EventLog(place)
        self.path = Path(os.environ[HOME]) / f"{stack}.json"
        self.state: dict[str, Any] = json.loads(self.path.read_text())
        self.resources: list[dict[str, Any]] = self.state["deployment"].setdefault("resources", [])
        self.counts: dict[str, int] = {}
        self.providers: dict[str, dict[str, Any]] = {}
        self.is_broken = False
        self.stopped = threading.Event()
        signal.signal(signal.SIGINT, lambda number, frame: self.stopped.set())

    def run(self) -> int:
        declared = self._declared()
        if declared is not None:
            for group in (one for one in declared if not _is_worked_on(one)), filter(_is_worked_on, declared):
                some = list(group)
                # Many are begun before the first of them is done.
                for one in some:
                    for op in self._operations(one):
                        self._before(op, one.urn, self._differing(one) if op in ("update", "replace") else ())
                for one in some if not self.planning else ():
                    if not self.stopped.is_set():
                        self._step(one)
            if not self.stopped.is_set():
                self._delete_what_is_gone({one.urn for one in declared})
            if not (self.planning or self.is_broken or self.stopped.is_set()):
                self._register(declared)
        self.log.tell(summaryEvent={"resourceChanges": self.counts})
        self.log.close()
        if self.stopped.is_set():
            return 8
        return (1 if self.planning else 4) if self.is_broken else 0

    def _declared(self) -> list[Declared] | None:
        config = YAML(typ="safe").load(settings_file(self.stack))["config"]
        try:
            found = declared_by(lambda: runpy.run_path("stacks", run_name="__main__"), self.stack, config)
        except Exception as error:
            urn = f"urn:pulumi:{self.stack}::anabranch::pulumi:pulumi:Stack::anabranch-{self.stack}"
            self._complain(urn, str(error))
            return None
        self.providers = {one.urn: one.inputs for one in found if one.type == PROVIDER}
        # Providers come first, as resources refer to them.
        return sorted(found, key=lambda one: (one.type in (TOPIC, ACL), one.name))

    def _register(self, declared: list[Declared]) -> None:
        """Keep what the program exports, with the stack itself: that comes last."""
        stack: Any = get_root_resource()
        urns = {one.urn for one in declared if one.type == STACK}
        for resource in self.resources:
            if resource["urn"] in urns:
                resource["outputs"] = dict(stack.outputs)
        self._save()

    def _step(self, one: Declared) -> None:
        old = self._old(one)
        for op in self._operations(one):
            try:
                if refusal := _refusal("FAKE_PULUMI_REFUSE", one.name):
                    raise Refused(refusal)
                self._carry_out(op, one, old)
                if (unready := _refusal("FAKE_PULUMI_UNREADY", one.name)) and op not in ("same", "import"):
                    self._keep(one, _unready(one, old, unready))
                    raise Refused(unready)
            except Refused as error:
                self._complain_twice(one.urn, str(error))
                self.log.tell(resOpFailedEvent={"metadata": _metadata(op, one.urn), "status": 1, "steps": 1})
                return
            self._keep(one, _entry(one))
            self.log.tell(resOutputsEvent={"metadata": _metadata(op, one.urn), "planning": False})
        if one.name == os.environ.get("FAKE_PULUMI_WAIT"):
            self.stopped.wait(STOP_SECONDS)

    def _old(self, one: Declared) -> dict[str, Any] | None:
        return next((resource for resource in self.resources if resource["urn"] == one.urn), None)

    def _keep(self, one: Declared, entry: dict[str, Any]) -> None:
        self.resources[:] = [resource for resource in self.resources if resource["urn"] != one.urn]
        self.resources.append(entry)
        self._save()

    def _operations(self, one: Declared) -> list[str]:
        """What is done about a resource, one after the other."""
        old = self._old(one)
        if old is None and one.import_id:
            stands = self._cluster(one.provider).read_topic(one.import_id)
            return ["import"] if stands == _inputs(one) else ["import", "update"]
        if old is None:
            return ["create"]
        if old["inputs"] == _inputs(one) and not old.get("initErrors"):
            return ["same"]
        if one.type == ACL or (one.type == TOPIC and one.inputs["partitions"] < old["inputs"]["partitions"]):
            return ["replace"]
        return ["update"]

    def _differing(self, one: Declared) -> list[str]:
        old = self._old(one)
        inputs = _inputs(one)
        return [key for key in inputs if old is not None and old["inputs"].get(key) != inputs[key]]

    def _carry_out(self, op: str, one: Declared, old: dict[str, Any] | None) -> None:
        if one.type not in (TOPIC, ACL) or op in ("same", "import"):
            return
        cluster = self._cluster(one.provider)
        if op == "replace":
            message = f"unable to replace resource {one.urn!r}: it is protected"
            raise Refused(message)
        if one.type == ACL:
            cluster.create_acl(one.inputs)
        elif op == "create":
            cluster.create_topic(one.inputs)
            if os.environ.get("FAKE_PULUMI_DIE") == one.name:
                pending = {"resource": _entry(one), "type": "creating"}
                self.state["deployment"]["pending_operations"] = [pending]
                self._save()
                os.kill(os.getpid(), signal.SIGKILL)
        else:
            before = old["inputs"] if old is not None else cluster.read_topic(one.import_id) or {}
            cluster.update_topic(before, one.inputs)

    def _delete_what_is_gone(self, declared: set[str]) -> None:
        for gone in [one for one in self.resources if one["urn"] not in declared]:
            self._before("delete", gone["urn"])
            if gone.get("protect"):
                self._complain(gone["urn"], "resource cannot be deleted because it is protected")
                continue
            if self.planning:
                continue
            if gone["type"] == ACL:
                self._cluster(gone["provider"]).delete_acl(gone["inputs"])
            self.resources.remove(gone)
            self._save()
            self.log.tell(resOutputsEvent={"metadata": _metadata("delete", gone["urn"]), "planning": False})

    def _before(self, op: str, urn: str, differing: Sequence[str] = ()) -> None:
        self.counts[op] = self.counts.get(op, 0) + 1
        metadata = _metadata(op, urn) | ({"diffs": list(differing)} if differing else {})
        self.log.tell(resourcePreEvent={"metadata": metadata, "planning": self.planning})

    def _cluster(self, provider: str) -> Cluster:
        return Cluster(self.providers[provider.rpartition("::")[0]])

    def _complain(self, urn: str, message: str) -> None:
        self.is_broken = True
        told = {"urn": urn, "message": f"<{{%reset%}}>{message}<{{%reset%}}>\n", "severity": "error", "color": "raw"}
        self.log.tell(diagnosticEvent=told)

    def _complain_twice(self, urn: str, message: str) -> None:
        """Complain as Pulumi's bridge to a provider and its engine do, each in its way, and of the whole update."""
        self._complain(urn, f"sdk-v2/provider2.go:572: sdk.helper_schema: {message}: provider=kafka@3.13.3")
        nested = f"1 error occurred:\n\t* updating {urn}: 1 error occurred:\n\t* {message}\n\n"
        self._complain(urn, nested)
        self._complain(f"urn:pulumi:{self.stack}::anabranch::{STACK}::anabranch-{self.stack}", "update failed")

    def _save(self) -> None:
        self.path.write_text(json.dumps(self.state))


def _metadata(op: str, urn: str) -> dict[str, Any]:
    return {"op": op, "urn": urn, "type": urn.split("::")[2].rpartition("$")[2], "provider": ""}


def _inputs(one: Declared) -> dict[str, Any]:
    """Return what a state keeps: whole numbers, and of secrets only that there is one."""
    kept = {}
    for key, value in one.inputs.items():
        is_secret = isinstance(one.raw[key], dict) and SECRET in one.raw[key].values()
        kept[key] = {"ciphertext": "v1:"} if is_secret else int(value) if isinstance(value, float) else value
    return kept


def _entry(one: Declared) -> dict[str, Any]:
    inputs = _inputs(one)
    return {
        "urn": one.urn,
        "custom": not one.type.startswith("anabranch:"),
        "type": one.type,
        "id": one.inputs.get("name", f"id-of-{one.name}"),
        "inputs": inputs,
        "outputs": inputs,
        "parent": one.parent,
        "protect": one.protect,
        "provider": one.provider,
    }


def _unready(one: Declared, old: dict[str, Any] | None, error: str) -> dict[str, Any]:
    """Return what a state keeps of a change that was made, and then could not be seen: what was, and what is."""
    entry = _entry(one)
    return entry | {"inputs": old["inputs"] if old else entry["inputs"], "initErrors": [error]}


def _is_worked_on(one: Declared) -> bool:
    return one.type in (TOPIC, ACL)


def _refusal(variable: str, name: str) -> str | None:
    refusals: dict[str, str] = json.loads(os.environ.get(variable, "{}"))
    return next((said for end, said in refusals.items() if name.endswith(end)), None)
