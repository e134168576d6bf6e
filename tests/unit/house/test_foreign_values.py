"""Every reader of what others may write: random values and changed records of ours raise nothing but Misfit."""

from __future__ import annotations

import ast
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.checkpoints.mirrormaker import formats
from reconciler.checkpoints.service.last_syncs import LastLooks
from reconciler.checkpoints.translation import ended, history
from reconciler.deploy.folder import DeploymentFolder, Generation
from reconciler.deploy.local import LocalDeployer
from reconciler.deploy.registry import Registry
from reconciler.model.acls.binding import Binding, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.base.shape import Misfit, fits, parsed
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.override import FlowOverride
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.model.planning.deployments import Process
from reconciler.model.recorded.capabilities import Capabilities, Capability, ProbeFinding, Verdict
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.model.recorded.declaration import DeclarationHistory, InForce
from reconciler.model.recorded.failed_flows import since
from reconciler.model.recorded.failover import Cut
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.recorded.placed import Placed
from reconciler.model.tasks.latency import Histogram, Latency, merged
from reconciler.model.tasks.process import TaskProcess
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.records.varint import signed
from reconciler.replicator.driver.watchdog import Watchdog
from reconciler.replicator.lease.assignor import LeaseHolder, Member, Share
from reconciler.replicator.partition import offset_syncs
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.shares import SharedTopic, Shares
from reconciler.report.status.summary import status_lines, summarise
from reconciler.report.status.to_json import status_json
from reconciler.state import command_keys, status
from reconciler.state.failovers import failed_over
from reconciler.state.journals import encoding, process, records
from tests.support.commands.foreign import JSON, changed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3] / "reconciler"
NOW = 1_700_000_000.0
LARGEST = 8 * 2**20

TOPIC = OwnedTopic("east.a", "id", "t", "d", "f", "east", "a", "id", 3, "identical", {"retention.ms": "1"})
GRANTED = OwnedBinding(Binding("topic", ResourcePattern("east.a"), "User:x", "READ"), "t", "f", "own")
OVERRIDE = FlowOverride("f", "east", "west", {"tasks": 2, "topics": {"include": ["a"]}}, by="u@h", since=NOW)
IN_FORCE = {"kind": "declaration", "history": [asdict(InForce("d", NOW, "u@h"))], "overrides": [OVERRIDE.to_json()]}
OVER = {"kind": "failover", "topology": "t", "flow": "f", "phase": "over", "since": 5.0, "by": "u@h"}
CUT = Cut("a", "east.a", "identical", ((1, 2), (-1, 0)), True, "made", ("{}", ""))
PLACED = Placed(frozenset({("a", 0)}), {("a", 1): None, ("a", 2): 7})
OF_FLOW = {"topology": "t", "flow": "f", "since": 5.0}
REBUILT: dict[str, Any] = {
    "kind": "rebuild",
    "topology": "t",
    "topic": "a",
    "id": None,
    "partitions": 1,
    "replicas": 1,
    "configs": {},
}
LOCK = {"kind": "lock", "by": "u@h", "since": NOW, "process": process.own_name()}
PROBE = Capabilities("id", NOW, (ProbeFinding(Capability.LOG_END, Verdict.HOLDS, "x"),))
COPY = CopyRecord("s", "t", 3, Runs((Run(5, 1), Run(9, -2))), ((1, 2),), False, Handed(7, (1, 2)), 4)
DEPLOYED = Process(
    "t", "dc", "replicate", "local", "/x", "/p", "1", ("replicate",), ("A",), (("f", "d"),), (("cpus", "1"),)
)
SHARES = Shares(2, {"a": SharedTopic("east.a", (0, 1), "identical", (1,))})
ROW = PartitionStatus(
    "a",
    0,
    "east.a",
    PartitionState.PARKED,
    5,
    9,
    Reason("AB220", "x"),
    Metrics(1, 2, Latency(*range(6)), 3, 0.5, 1, 1, 1),
)
WORD = TaskStatus(
    "f", "east", "west", "run", 0, 2, NOW, False, None, 1, 2, 0.5, 1.0, (ROW,), Histogram(((5, 1),), 5, 5, 5)
)
MEMBER = Member(LeaseHolder("run", 0, NOW), frozenset({("a", 0)}), frozenset({("a", 0)}), frozenset({("a", 0)}))
SHARE = Share(frozenset({("a", 0)}), {("b", 1): LeaseHolder("run", 1, NOW)}, frozenset({("a", 0)}))
NOTE = OffsetMetadata("s", "t", "anabranch.t.f.run.0", 5, 1, 2, 3)


class Reader(NamedTuple):
    """A reader of JSON, and a value that it takes."""

    where: str
    read: Callable[[Any], Any]
    valid: Mapping[str, Any]


def owned(key: str, value: Mapping[str, Any]) -> Reader:
    return Reader("state/journals/records", lambda one: records.owned(key, one), value)


def used(word: TaskStatus) -> TaskStatus:
    """Do with a word whatever is done with it."""
    flow = Flow("f", "east", "west", Selection((".*",)))
    summaries = summarise([flow], status.newest_runs([word], NOW), NOW)
    assert len(json.dumps(status_json(summaries, NOW))) + len(status_lines(summaries, whole=True))
    Watchdog().silent([word], NOW)
    merged([word.latency, word.latency])
    return word


def in_words(value: Any) -> Any:
    found = failed_over("t", [OVER, value] if value != OVER else [value])
    return [since(one) for one in found.values()]


def unpacked(kind: type[Member] | type[Share]) -> Callable[[Any], Any]:
    return lambda value: kind.from_bytes(zlib.compress(json.dumps(value).encode()))


CONNECTOR = ConnectorRecord(
    "us-west", {"connector.class": "MirrorSourceConnector", "topics": "a"}, "PAUSED", "ops", NOW
)
READERS = [
    Reader("model/tasks/process", TaskProcess.from_json, TaskProcess(5, 1, (1,) * 16, 9).to_json()),
    owned("topic/east.a", {"kind": "topic", **asdict(TOPIC)}),
    owned("acl/x", {"kind": "acl", **asdict(GRANTED)}),
    owned("declaration/t/west", IN_FORCE),
    owned("failover/t/f", OVER),
    owned("failover-cut/t/f/east.a", {"kind": "failover-cut", **OF_FLOW, **CUT.to_json()}),
    owned("failover-moved/t/f/g", {"kind": "failover-moved", **OF_FLOW, "group": "g", **PLACED.to_json()}),
    owned("failover-returned/t/f/g", {"kind": "failover-returned", **OF_FLOW, "group": "g", **PLACED.to_json()}),
    owned("lock/t/west/x", LOCK),
    owned("lock/t/west/x/beat", {"kind": "beat", "count": 5}),
    owned("probe/id", {"kind": "probe", "trials": 1, **PROBE.to_json()}),
    owned("rebuild/t/a", REBUILT),
    owned("connector/us-west", {"kind": "connector", "topology": "t", **CONNECTOR.to_json()}),
    Reader("model/declared/override", FlowOverride.from_json, OVERRIDE.to_json()),
    Reader("model/recorded/connector", ConnectorRecord.from_json, CONNECTOR.to_json()),
    Reader("state/connectors", ConnectorRecord.from_json, CONNECTOR.to_json()),
    Reader("state/journals/records", lambda one: records.copies("f/east.a/0", one), COPY.to_json()),
    Reader("state/journals/records", lambda one: records.control("stop/run/f", one), {"command": "stop", "time": NOW}),
    Reader(
        "state/journals/records",
        lambda one: records.control("pause@t/f/a/0", one),
        {"command": "pause", "time": NOW, "flow": "f", "topic": "a", "partition": 0, "parked-only": False},
    ),
    Reader(
        "state/journals/records",
        lambda one: records.control("shares/run/f", one),
        {"command": "shares", "time": NOW, "shares": {**SHARES.to_json(), "trouble": None}},
    ),
    Reader(
        "checkpoints/translation/ended",
        lambda one: ended.read_key(json.dumps(["MirrorSourceConnector", one]).encode()),
        {"cluster": "east", "partition": 0, "topic": "orders"},
    ),
    Reader("checkpoints/translation/ended", lambda one: ended.read_value(json.dumps(one).encode()), {"offset": 7}),
    Reader("model/recorded/ownership", OwnedTopic.from_json, asdict(TOPIC)),
    Reader("model/acls/binding", OwnedBinding.from_json, asdict(GRANTED)),
    Reader("model/recorded/declaration", lambda one: str(DeclarationHistory.from_json(one).in_force), IN_FORCE),
    Reader("model/recorded/failover", Cut.from_json, CUT.to_json()),
    Reader("state/failovers", in_words, OVER),
    Reader("state/failovers", in_words, {"kind": "failover-cut", **OF_FLOW, **CUT.to_json()}),
    Reader("model/recorded/placed", Placed.from_json, PLACED.to_json()),
    Reader("model/recorded/capabilities", Capabilities.from_json, PROBE.to_json()),
    Reader("model/offsets/runs", lambda one: CopyRecord.from_json(one).aside_from(0), COPY.to_json()),
    Reader("model/tasks/status", lambda one: used(TaskStatus.from_json(one)), WORD.to_json()),
    Reader("model/planning/deployments", lambda one: Process.from_json(one).facts, DEPLOYED.to_json()),
    Reader("replicator/driver/discovery", lambda one: Shares.from_json(one).of(0), SHARES.to_json()),
    Reader("replicator/lease/assignor", unpacked(Member), json.loads(zlib.decompress(MEMBER.to_bytes()))),
    Reader("replicator/lease/assignor", unpacked(Share), json.loads(zlib.decompress(SHARE.to_bytes()))),
    Reader(
        "replicator/partition/offset_metadata",
        lambda one: str(OffsetMetadata.parse(json.dumps(one))),
        json.loads(str(NOTE)),
    ),
]
# What reads bytes, or keys, is tried by itself below.
OTHERS = {
    "checkpoints/mirrormaker/formats",
    "checkpoints/service/last_syncs",
    "checkpoints/translation/noting",
    *("deploy/driven", "deploy/folder", "deploy/local", "deploy/registry", "deploy/resource_manager", "deploy/rest"),
    *("deploy/spark_driver", "deploy/spark_master"),
    "replicator/partition/offset_syncs",
    "service/connect/routes",
    "state/command_keys",
    "state/status",
    "state/journals/encoding",
}


@pytest.mark.parametrize("one", READERS, ids=[f"{number} {one.where}" for number, one in enumerate(READERS)])
def test_a_record_of_ours_is_read(one: Reader) -> None:
    # As it comes out of a topic.
    one.read(json.loads(json.dumps(one.valid)))


@pytest.mark.parametrize("one", READERS, ids=[f"{number} {one.where}" for number, one in enumerate(READERS)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_written_is_read_or_passed_over(one: Reader, data: st.DataObject) -> None:
    value = data.draw(JSON | changed(json.loads(json.dumps(one.valid))))
    text = json.dumps(value)
    # As it comes out of a journal, where bounds are held before; and as it is, where they are not.
    for given_one in (fits(lambda text: parsed(text, LARGEST), text), value):
        if isinstance(given_one, dict):
            fits(one.read, given_one)


def modules(*calls: str) -> Iterable[str]:
    """Yield the modules that call one of some functions of `model.base.shape`."""
    for path in sorted(ROOT.rglob("*.py")):
        if "reconciler.model.base.shape" not in (text := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "reconciler.model.base.shape"
            for alias in node.names
        }
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if imported & called & set(calls):
            yield path.relative_to(ROOT).with_suffix("").as_posix()


def test_no_reader_is_left_out() -> None:
    assert set(modules("fields", "parsed", "fits")) <= {one.where for one in READERS} | OTHERS


@pytest.mark.parametrize("path", sorted((ROOT / "state").glob("*.py")), ids=lambda path: path.name)
def test_journals_are_read_through_checks_alone(path: Path) -> None:
    """JSON is taken apart in one place: nobody reads it past the bounds."""
    assert "json.loads" not in path.read_text(encoding="utf-8")


# --- bytes and keys ---------------------------------------------------------------------------------------------------


def message(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]] | None = None) -> Message:
    made = SimpleNamespace(
        key=lambda: key, value=lambda: value, headers=lambda: headers, offset=lambda: 5, error=lambda: None
    )
    return cast("Message", made)


bytes_like = st.none() | st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())


@given(bytes_like, bytes_like)
def test_records_of_journals(key: bytes | None, value: bytes | None) -> None:
    try:
        encoding.decoded(message(key, value), LARGEST)
    except Misfit as error:
        assert 0 < len(str(error)) < 300


@given(JSON | changed(WORD.to_json()) | changed({"of": "f/0/run", "partitions": [ROW.to_json()]}))
@settings(deadline=None)
def test_words_of_tasks(value: Any) -> None:
    heard = status._Statuses()
    heard.take("f/0/run", WORD.to_json())
    if isinstance(value, dict):
        heard.take("f/0/run", value)
        heard.take("f/0/run/0", value)
    for word in heard.words():
        used(word)


@given(
    st.text(max_size=30)
    | st.sampled_from(["pause@t/f/x/" + "9" * 5_000, "pause@t/f/x/٣", "restart@t/f/x/-1", "pause@/f"])
)
def test_keys_of_commands(key: str) -> None:
    told = command_keys.parsed(key)
    assert told is None or (told.scope.partition or 0) <= 1_000_000


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_checkpoints_and_heartbeats(key: bytes, value: bytes) -> None:
    assert len(formats.newest([(key, value), (key, b""), (None, None), (key, None), (key, value)])) <= 1
    for read in (formats.read_checkpoint, formats.read_heartbeat):
        try:
            read(key, value)
        except ValueError:
            continue


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=30))
def test_what_heartbeats_say_of_groups(key: bytes, value: bytes, said: bytes) -> None:
    looks = LastLooks.__new__(LastLooks)
    looks._found = {}
    names = (formats.FLOW_HEADER, formats.GROUPS_HEADER, formats.TOPOLOGY_HEADER)
    stamps = (value, formats.heartbeat_value(2**63 - 1), formats.heartbeat_value(-1), formats.heartbeat_value(5_000))
    for stamp in stamps:
        for groups in (said, b"9" * 5_000, b"-1"):
            looks._take(message(formats.heartbeat_key("a", "b"), stamp, [(names[0], said), (names[1], groups)]))
            looks._take(message(formats.heartbeat_key("a", "b"), stamp, [(names[0], b"x"), (names[2], said)]))
    assert all(0 <= look.time < 4e10 for look in looks._found.values())


@given(
    st.binary(max_size=40),
    st.binary(max_size=40),
    st.dictionaries(st.sampled_from([b"anabranch-span", b"anabranch-position"]), st.binary(max_size=40)),
)
def test_offset_syncs(key: bytes, value: bytes, headers: dict[bytes, bytes]) -> None:
    log = b"\x00\x01a\x00\x00\x00\x00"
    for one, two in ((key, value), (log, value), (log, (value * 16)[:16]), (log, bytes(16))):
        try:
            offset_syncs.sync_of(one, two, headers)
        except (ValueError, struct.error):
            continue


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20) | st.sampled_from([2**63 - 1, -(2**63), -1])


@given(
    st.lists(
        st.tuples(NUMBERS, NUMBERS, st.none() | st.lists(NUMBERS, min_size=3, max_size=9), st.none() | NUMBERS),
        max_size=6,
    )
)
@example([(0, 0, [0, 0, 2**62, 2**62, 2**62, 2**62], None), (5, 5, None, 5)])
@example([(-5, -7, None, None), (2**63 - 1, 2**63 - 1, None, -1)])
def test_what_offset_syncs_tell(told: list[tuple[int, int, list[int] | None, int | None]]) -> None:
    """Numbers as anybody may write them, and what is made of them: places of the logs or nothing."""
    copy = history._CopySyncs()
    for source, target, span, position in told:
        headers = {} if span is None else {b"anabranch-span": b"".join(map(signed, span))}
        if position is not None:
            headers[b"anabranch-position"] = struct.pack(">q", position) + str(NOTE).encode()
        try:
            sync = offset_syncs.sync_of(b"\x00\x01a\x00\x00\x00\x00", struct.pack(">qq", source, target), headers)
        except (ValueError, struct.error):
            continue
        copy.add(sync)
    copy.settle()
    for offset in (0, 5, 2**62, 2**63 - 1):
        copy.runs.downstream(offset)
        copy.runs.upstream(offset)
    assert all(0 <= number < 2**63 for run in copy.runs for number in run)


@given(st.binary(max_size=60))
def test_metadata_of_members(data: bytes) -> None:
    for kind in (Member, Share):
        for given_one in (data, zlib.compress(data), zlib.compress(data) + b"more", zlib.compress(data)[:-3]):
            fits(kind.from_bytes, given_one)


def test_names_of_processes() -> None:
    parts = process.own_name().split("/")
    for pid in ("9" * 5_000, "٣", "-1", "x"):
        process.is_gone("/".join([*parts[:3], pid, parts[4]]))


def test_a_forged_word_costs_nothing_by_its_numbers() -> None:
    heard = status._Statuses()
    for forged in ({"tasks": 10**6}, {"tasks": 10**9}, {"pages": 10**9}, {"task": -5}):
        heard.take("f/0/run", {**WORD.to_json(), **forged})
    assert heard.words() == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "processes": []}', '{"deployments": [{"kind": "x"}]}', "\x00"]
)
def test_files_of_deployments_that_others_changed_end_in_an_error(text: str, tmp_path: Path) -> None:
    folder = DeploymentFolder(tmp_path, is_private=True)
    folder.record.write_text(text)
    registry = tmp_path / "anabranch" / "deployments" / "shop.json"
    registry.parent.mkdir(parents=True)
    registry.write_text(text)
    for read in (folder.generations, Registry("shop", {"XDG_STATE_HOME": str(tmp_path)}).read):
        with pytest.raises(EnvironmentFault, match="AB761"):
            read()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "replicate.1.json").write_text(text)
    assert not LocalDeployer(tmp_path, {}).fares(Generation(DEPLOYED, 1)).is_running
