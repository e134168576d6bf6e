"""`offsets` on a real broker: reading groups, moving them, and what is refused before anything is written."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.text import from_cell
from tests.support.clusters.consumers import (
    Run,
    hundred,
    join_share_group,
    leave_behind,
    member_of,
    offsets_of,
    places_of,
    rows,
    table,
)
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, delete_records
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write as declare
from tests.support.replicator.copying import SECONDS

ERROR, USAGE, REFUSED = 1, 2, 4


def test_offsets_are_read_with_their_logs(run: Run, source_cluster: EmbeddedCluster, topic_name: str) -> None:
    hundred(source_cluster, topic_name, 2)
    delete_records(source_cluster, topic_name, 10)
    billing, shipping = f"billing-{topic_name}", f"shipping-{topic_name}"
    leave_behind(source_cluster, billing, {(topic_name, 0): 40, (topic_name, 1): 100}, metadata='at "noon", or\nso')
    leave_behind(source_cluster, shipping, {(topic_name, 0): 5}, epoch=0)
    leave_behind(source_cluster, f"anabranch.{topic_name}", {(topic_name, 0): 5})
    columns = [
        *("group", "topic", "partition", "offset", "metadata", "leader_epoch"),
        *("log_start", "log_stable", "log_end", "lag"),
    ]
    expected = [
        [billing, topic_name, "0", "40", 'at "noon", or\nso', "", "10", "100", "100", "60"],
        [billing, topic_name, "1", "100", 'at "noon", or\nso', "", "0", "100", "100", "0"],
        # What stood before the log's beginning is not counted.
        [shipping, topic_name, "0", "5", "", "0", "10", "100", "100", "90"],
    ]
    code, out, err = run("read", "--group", f".+{topic_name}", "--format", "csv")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1 + len(expected), "each row is one line"
    assert [list(map(from_cell, row)) for row in csv.reader(io.StringIO(out))] == [columns, *expected]

    code, out, _ = run("read", "--group", billing, "--group", shipping, "--format", "json")
    value = json.loads(out)
    assert value["version"] == 1
    numbers = {"partition", "offset", "leader_epoch", "log_start", "log_stable", "log_end", "lag"}
    assert value["offsets"] == [
        {
            name: (int(cell) if cell else None) if name in numbers else cell
            for name, cell in zip(columns, row, strict=True)
        }
        for row in expected
    ]

    code, out, _ = run("read", "--group", shipping)
    assert (code, table(out)[1:]) == (0, [[shipping, topic_name, "0", "5", "0", "10", "100", "100", "90"]])
    code, out, err = run("read", "--group", "all", "--topic", f"{topic_name}x")
    assert (code, out) == (0, "no offsets\n")
    assert f"topic {topic_name}x: warning: --topic matches no topic; did you mean {topic_name}? [AB138]" in err
    code, out, _ = run("read", "--group", "all", "--topic", f"{topic_name[:-1]}.?", "--format", "csv")
    assert {row["group"] for row in rows(out)} == {billing, shipping}


def test_groups_that_are_not_there_or_not_handled_are_named(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    plain, shared, ours = f"plain-{topic_name}", f"shared-{topic_name}", f"anabranch.{topic_name}"
    leave_behind(source_cluster, plain, {(topic_name, 0): 0})
    leave_behind(source_cluster, ours, {(topic_name, 0): 0})
    join_share_group(source_cluster, shared, topic_name)

    code, out, err = run("read", "--group", f".*{topic_name}", "--format", "csv")
    assert (code, [row["group"] for row in rows(out)]) == (0, [plain])
    assert "share groups keep their progress elsewhere; not handled [AB629]" in err
    assert err.count("AB629") == 1
    assert f"group {shared}" in err

    code, out, err = run("read", "--group", f"{plain}x", "--group", shared, "--group", ours)
    assert (code, out) == (ERROR, "")
    assert f"group {plain}x: there is no such group; did you mean {plain}? [AB625]" in err
    assert f"group {shared}: is no group of consumers: share groups keep their progress elsewhere" in err
    assert f"group {ours}: is the group of a flow, and holds the flow's positions [AB629] → use --flow" in err

    odd = [f"app[1]-{topic_name}", f"new\nline-{topic_name}", f"team+app-{topic_name}"]
    for group in odd:
        leave_behind(source_cluster, group, {(topic_name, 0): 0})
    code, out, err = run(
        "read", "--group", odd[0], "--group", odd[2], "--group", f"new.*{topic_name}", "--format", "json"
    )
    assert (code, [row["group"] for row in json.loads(out)["offsets"]], err) == (0, odd, "")
    code, out, err = run("read", "--group", f"team[+]ap-{topic_name}", "--group", "all")
    assert (code, out) == (ERROR, "")
    assert (
        f"there is no group of this name, nor one that it matches as a regular expression; did you mean {odd[2]}?"
        in err
    )

    for group, why in ((f"{plain}x", "AB625"), (shared, "AB629"), (ours, "AB629")):
        code, out, err = run("write", "--group", group, "--topic", topic_name, "--to", 0, "--yes")
        assert (code, out, f"[{why}]" in err) == (ERROR, "", True)
        assert f"group {group}" in err
    assert offsets_of(source_cluster, f"{plain}x") == {}


def test_a_group_is_moved_to_where_it_is_told(run: Run, source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name, 2)
    producer = Producer(source_cluster.client_config() | {"log_level": "2"})
    for number in range(100):
        producer.produce(topic_name, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + 1_000 * number)
    assert producer.flush(SECONDS) == 0
    delete_records(source_cluster, topic_name, 10)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40, (topic_name, 1): 0}, metadata="old", epoch=0)
    first = [topic_name, "0"]

    def moved(to: object, *more: object) -> int:
        code, _, err = run("write", "--group", group, "--topic", topic_name, "--to", to, "--yes", *more)
        assert (code, "wrote " in err) == (0, True), err
        return offsets_of(source_cluster, group)[topic_name, 0]

    code, out, err = run("write", "--group", group, "--topic", topic_name, "--partition", 0, "--to", 41, "--dry-run")
    passed = [group, *first, "40", "41", "1", "offset", "passed", "over"]
    assert (code, table(out)[1], err) == (0, passed, "dry run: nothing was written")
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 40, (topic_name, 1): 0}

    assert moved(41, "--partition", 0) == 41
    # Somebody else's leader epoch would have readers look for it in another cluster's log.
    place = places_of(source_cluster, group)[topic_name, 0]
    assert (place.leader_epoch, place.metadata) == (-1, "")
    assert moved("earliest", "--partition", 0) == 10
    assert moved("timestamp:2023-11-14T22:13:55.500Z", "--partition", 0) == 36
    assert moved("timestamp:2023-11-14T23:13:50+01:00", "--partition", 0) == 30
    assert moved("timestamp:2023-11-14T22:13:40", "--partition", 0) == 20
    assert moved("timestamp:2100-01-01", "--partition", 0) == 100
    assert moved("earliest") == 10
    assert moved("latest") == 100
    assert offsets_of(source_cluster, group)[topic_name, 1] == 0

    for to in ("-1", "1e3", "9223372036854775808", "newest", "timestamp:noon"):
        code, _, err = run("write", "--group", group, "--topic", topic_name, "--to", to, "--yes")
        assert (code, "such as 41093 or" in err.replace("│ ", "")) == (USAGE, True)


def test_somebody_agrees_by_typing_the_name(file: Path, source_cluster: EmbeddedCluster, topic_name: str) -> None:
    hundred(source_cluster, topic_name)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    command = ("offsets", "write", file, "--cluster", "us-east", "--group", group, "--topic", topic_name, "--to", 7)

    ended = anabranch(*command)
    assert (ended.code, "there is no terminal on which to confirm it [AB144]" in ended.stderr) == (USAGE, True)
    ended = anabranch(*command, answer="y\n")
    assert (ended.code, "Nothing was written." in ended.stderr) == (ERROR, True)
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 40}
    ended = anabranch(*command, answer=f"{group}\n")
    assert (ended.code, f"Type the group's name ({group}) to go on: " in ended.stderr) == (0, True), ended
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 7}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_refused_as_it_is_written(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, protocol: str
) -> None:
    hundred(source_cluster, topic_name)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    command = ("write", "--group", group, "--topic", topic_name, "--to", 7, "--yes")
    with member_of(source_cluster, group, [topic_name], protocol):
        code, out, err = run(*command, "--format", "json")
        assert (code, "the group has members" in err, "[AB626]" in err) == (REFUSED, True, True)
        value = json.loads(out)
        assert ([move["written"] for move in value["moves"]], len(value["problems"])) == ([False], 1)
        assert offsets_of(source_cluster, group) == {(topic_name, 0): 40}
    code, _, err = run(*command)
    assert (code, err) == (0, "wrote 1 offset of 1 group")
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 7}


def test_a_group_is_made_only_when_that_is_asked_for_also_one_that_is_dead(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    hundred(source_cluster, topic_name)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    client = admin(source_cluster)
    client.delete_consumer_groups([group])[group].result(ANSWER_SECONDS)
    command = ("write", "--group", group, "--topic", topic_name, "--to", 7, "--yes")
    code, out, err = run(*command)
    assert (code, out) == (ERROR, "")
    assert f"group {group} on cluster us-east: there is no such group [AB625]" in err
    assert "--create makes it" in err
    assert offsets_of(source_cluster, group) == {}
    code, out, _ = run(*command, "--create")
    assert (code, table(out)[1]) == (0, [group, topic_name, "0", "none", "7"])
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 7}


def test_offsets_outside_of_the_log_are_refused_or_clamped(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    hundred(source_cluster, topic_name)
    delete_records(source_cluster, topic_name, 10)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    for wrong, right, side in ((9, 10, "before the log begins"), (101, 100, "behind the log's end")):
        before = offsets_of(source_cluster, group)
        command = ("write", "--group", group, "--topic", topic_name, "--to", wrong, "--yes")
        code, _, err = run(*command)
        assert (code, f"is {side}: readers can stand from 10 to 100" in err, "[AB624]" in err) == (ERROR, True, True)
        assert f"give --clamp to write {right}" in err
        assert offsets_of(source_cluster, group) == before
        code, out, err = run(*command, "--clamp")
        assert (code, f"clamped: {wrong} is outside of the log" in out) == (0, True)
        assert offsets_of(source_cluster, group) == {(topic_name, 0): right}
    for right in (10, 100):
        assert run("write", "--group", group, "--topic", topic_name, "--to", right, "--yes")[0] == 0


def test_what_an_open_transaction_holds_is_still_to_be_read(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    hundred(source_cluster, topic_name)
    group = f"billing-{topic_name}"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    producer = Producer(source_cluster.client_config() | {"transactional.id": topic_name, "log_level": "2"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic_name, b"%d" % number, partition=0)
    assert producer.flush(SECONDS) == 0
    try:
        _, out, _ = run("read", "--group", group, "--format", "csv")
        (row,) = rows(out)
        assert [row[name] for name in ("log_start", "log_stable", "log_end", "lag")] == ["0", "100", "105", "65"]
        for to, reached in (("latest", 100), (103, 103), (106, 100)):
            code, _, err = run("write", "--group", group, "--topic", topic_name, "--to", to, "--clamp", "--yes")
            assert code == 0, err
            assert offsets_of(source_cluster, group) == {(topic_name, 0): reached}
    finally:
        producer.abort_transaction(SECONDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["read"], "name groups"),
        (["read", "--cluster", "us-east"], "name groups"),
        (["read", "--group", "billing"], "name groups"),
        (["read", "--flow", "us-east-eu-west", "--group", "billing"], "--flow goes without"),
        (["read", "--flow", "nowhere"], "no flow nowhere is declared; there are us-east-eu-west"),
        (["read", "--cluster", "mars", "--group", "all"], "no cluster mars is declared; there are us-east, eu-west"),
        (["read", "--cluster", "us-east", "--group", "bill[ing"], "found bill[ing"),
        (["export", "--cluster", "us-east", "--group", "all"], "Missing option '--out'"),
        (["write", "--topic", "orders", "--to", "0", "--yes"], "name a group"),
        (
            ["write", "--flow", "us-east-eu-west", "--create", "--topic", "a", "--to", "0", "--yes"],
            "--flow goes without",
        ),
        (["import", "--from", "GROUPS", "--yes"], "name their cluster"),
        (["import", "--from", "FLOWS", "--cluster", "us-east", "--yes"], "positions of flows"),
        (["import", "--from", "FLOWS", "--create", "--yes"], "positions of flows"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = declare(tmp_path, "127.0.0.1:1", "127.0.0.1:1", "orders")
    for kind in ("group", "flow"):
        (tmp_path / f"{kind.upper()}S").write_text(f"{kind},topic,partition,offset\na,b,0,0\n")
    command, *rest = [str(tmp_path / one) if one in ("GROUPS", "FLOWS") else one for one in arguments]
    assert main(["offsets", command, str(file), *rest]) == USAGE
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_cluster_that_does_not_answer_makes_the_answer_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = declare(tmp_path, "127.0.0.1:1", "127.0.0.1:1", "orders")
    assert main(["offsets", "read", str(file), "--cluster", "us-east", "--group", "all"]) == 6
    assert "[AB310]" in capsys.readouterr().err
