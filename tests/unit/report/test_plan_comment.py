"""The Markdown of a plan has a bound: what may do harm is in it whatever else there is, and it tells what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitops.text import LIMIT, ROOM, Outcome, plan_comment
from reconciler.cli.main import main
from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.planning.changes import Change, FieldChange, StoppedTopic
from reconciler.model.planning.desired import DesiredTopic, TopicSetting
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import (
    AlterConfig,
    ClusterPlan,
    ConfigChange,
    CreateTopic,
    GrantAcl,
    Notice,
    Plan,
    PlannedFlow,
    RevokeAcl,
    Step,
)
from reconciler.report.plan.to_markdown import SHORTEST, plan_markdown
from reconciler.report.text.markdown import code

pytestmark = pytest.mark.slow

WHERE = "[the run's artifacts](https://github.example/acme/streams/actions/runs/77)"
NAMES = st.text("abcdefgh-._", min_size=3, max_size=30).map("t".__add__)


def new(cluster: str, source: str, topic: str, retention: str = "1") -> CreateTopic:
    set_to = (
        TopicSetting("cleanup.policy", "delete", "source-default"),
        TopicSetting("retention.ms", retention, "source"),
    )
    flow = f"{source}-{cluster}"
    return CreateTopic(DesiredTopic(cluster, f"{source}.{topic}", flow, source, topic, "id", 6, 3, "identical", set_to))


def entries(markdown: str) -> list[str]:
    return re.split(r"\n(?=- |#### )", markdown)


def acl(name: str, principal: str = "User:alice", operation: str = "READ", denied: bool = False) -> Binding:
    return Binding("topic", ResourcePattern(name), principal, operation, "DENY" if denied else "ALLOW")


def plan_of(*clusters: ClusterPlan) -> Plan:
    return Plan("payments", "digest", clusters)


def commented(plan: Plan) -> str:
    markdown = plan_markdown(plan, ROOM, "anabranch plan payments.yaml")
    return plan_comment(Outcome("payments", "plan", 3, markdown, ""), WHERE, "0123456789abcdef")


DELETED = st.builds(
    DeleteTopic,
    *map(st.just, ("eu-west",)),
    NAMES.map("us-east.".__add__),
    st.just("id"),
    st.sampled_from(["one", "two"]),
    st.just("us-east"),
    NAMES,
    st.sampled_from(["flow-gone", "not-taken"]),
    st.sampled_from(["", "", "no cluster is declared"]),
)
BINDINGS = st.builds(
    acl, NAMES, st.sampled_from(["User:a", "User:b"]), st.sampled_from(["READ", "DESCRIBE"]), st.booleans()
)
ACLS = st.one_of(
    st.builds(GrantAcl, st.just("eu-west"), BINDINGS, st.sampled_from(["one", "two"])),
    st.builds(RevokeAcl, st.just("eu-west"), BINDINGS, st.just("one"), is_foreign=st.booleans()),
)
WARNINGS = st.one_of(
    st.builds(Notice, NAMES, st.sampled_from(["somebody else writes there", "is far behind"])),
    st.builds(lambda name, n: Notice.about(name, "has {} partitions: never fewer", n), NAMES, st.integers(2, 9)),
)
ENDED = st.builds(Change, st.just("flow"), NAMES, st.just("ends"), why=st.sampled_from(["not enabled", "gone"]))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(DELETED, max_size=60, unique_by=lambda one: one.name),
    st.lists(ACLS, max_size=60),
    st.lists(WARNINGS, max_size=40),
    st.lists(ENDED, max_size=10, unique_by=lambda one: one.name),
    st.sampled_from([0, 1, 40, 4_000]),
    st.booleans(),
)
def test_what_may_do_harm_is_in_the_comment_whatever_is_created(
    deleted: list[DeleteTopic],
    acls: list[GrantAcl | RevokeAcl],
    warned: list[Notice],
    ended: list[Change],
    created: int,
    alike: bool,
) -> None:
    made = [new("eu-west", "us-east", f"new-{n:05}", "1" if alike else str(n)) for n in range(created)]
    steps: tuple[Step, ...] = (*made, *acls, *deleted)
    text = commented(plan_of(ClusterPlan("eu-west", "dc2", steps, warnings=tuple(warned), changes=tuple(ended))))
    assert len(text) < LIMIT
    assert "Not all that must be looked at" not in text
    told = entries(text)
    for one in deleted:
        assert [e for e in told if code(one.name) in e and "deleted, with all records" in e], one
    for step in acls:
        mark, (who, what, on) = (
            "`+`" if isinstance(step, GrantAcl) else "`-`",
            (
                code(step.binding.who),
                step.binding.operation,
                code(str(step.binding.pattern)),
            ),
        )
        assert [e for e in told if e.startswith(f"- {mark}") and who in e and what in e and on in e], step
    for notice in warned:
        subject = code(f"{notice.subject} ({', '.join(notice.own)})" if notice.own else notice.subject)
        assert [e for e in told if e.startswith("- ⚠") and (subject in e or code(notice.subject) in e)], notice
    for change in ended:
        assert [e for e in told if code(change.name) in e and f"**: {change.why}" in e], change
    assert f"New: {len(made):,} topic" in text or not made
    left_out = re.findall(r"left out here\*\*: `anabranch plan payments.yaml` shows all", text)
    assert bool(left_out) == (sum(f"`us-east.new-{n:05}`" in text for n in range(created)) < created)


@pytest.mark.parametrize("longest", [SHORTEST, 30_000, ROOM])
def test_more_harm_than_has_room_is_counted_and_said_aloud(longest: int) -> None:
    steps = [
        DeleteTopic("eu-west", f"us-east.gone-{n}", "id", "f", "us-east", f"gone-{n}", "not-taken")
        for n in range(9_000)
    ]
    granted = [GrantAcl("eu-west", acl(f"us-east.{n}", f"User:{n}"), f"flow-{n}") for n in range(3_000)]
    text = plan_markdown(plan_of(ClusterPlan("eu-west", "dc2", (*steps, *granted))), longest, "anabranch plan a.yaml")
    assert len(text) <= longest
    first = text.split("#### ")[0]
    assert "Not all that must be looked at has room here" in first
    assert "Deleted: 9,000 topics, Access: 3,000 ACLs granted, 0 revoked" in first
    assert "`anabranch plan a.yaml`" in first
    kept = text.count("`us-east.gone-")
    assert f"{9_000 - kept:,} names left out here" in text
    assert "**9,000 topics** **deleted, with all records**" in text


def test_names_that_need_escapes_are_counted_with_them() -> None:
    odd = [Notice(f"{n}|*<b>&#@team" * 20, "is odd") for n in range(500)]
    assert (
        len(plan_markdown(plan_of(ClusterPlan("eu-west", "dc2", warnings=tuple(odd))), SHORTEST, "x" * 999)) <= SHORTEST
    )


def test_a_thousand_equal_topics_and_what_they_allow_are_two_lines() -> None:
    made = [new("eu-west", "us-east", f"orders-{n:04}") for n in range(1_000)]
    granted = [
        GrantAcl("eu-west", acl(step.name, who, operation), step.topic.flow)
        for step in made
        for who in ("User:alice", "User:bob")
        for operation in ("READ", "DESCRIBE")
    ]
    text = commented(plan_of(ClusterPlan("eu-west", "dc2", (*made, *granted))))
    assert len(text) < 30_000
    assert "Access: 4,000 ACLs granted, 0 revoked" in text
    assert (
        "- `+` eu-west: `User:alice`, `User:bob` READ, DESCRIBE on each of the **1,000 topics** that are new there; "
        "as the originals of flow us-east-eu-west\n"
    ) in text
    assert "- `+` eu-west: **1,000 topics**, by flow `us-east-eu-west`: 6 partitions, replication 3, identical" in text
    assert text.count("cleanup.policy") == 1
    assert all(code(step.name) in text for step in made)
    assert "left out" not in text


def mesh(aliases: list[str], topics: int) -> Plan:
    clusters = []
    for target in aliases:
        others = [alias for alias in aliases if alias != target]
        steps = [new(target, source, f"orders-{n:04}") for source in others for n in range(topics)]
        reading = [
            GrantAcl(target, acl(f"orders-{n:04}", "User:mirror", operation), f"{target}-{others[0]}", role="own")
            for n in range(topics)
            for operation in ("READ", "DESCRIBE")
        ]
        flows = [PlannedFlow(f"{source}-{target}", source, target, 1, topics, "identical") for source in others]
        changes = [Change("flow", one.name, "changes", (FieldChange("quota", None, "1MB/s"),)) for one in flows]
        clusters.append(ClusterPlan(target, f"dc-{target}", (*reading, *steps), tuple(flows), changes=tuple(changes)))
    return plan_of(*clusters)


def test_six_clusters_with_a_thousand_names_fit_whole() -> None:
    aliases = [f"c{n}" for n in range(6)]
    text = commented(mesh(aliases, 1_000))
    assert len(text) < 50_000
    assert "left out" not in text
    # A name twice: as what the replicator reads, and as what is made.
    assert {text.count(f"`orders-{n:04}`") for n in range(1_000)} == {2}
    every = ", ".join(aliases)
    assert f"- `~` {every}: **30 flows**: `quota` `+ 1MB/s`" in text
    assert (
        f"- `+` {every}: `User:mirror` READ, DESCRIBE on **1,000 topics**; the replicator needs it for flows c0-c1"
        in text
    )
    assert f"- `+` {every}: **1,000 originals**, their **30,000 copies**, by each of **30 flows**" in text
    assert "`c1-c0` as `c1.<topic>`" in text


def test_what_is_deleted_of_a_mesh_is_told_by_originals_and_what_flows_call_their_copies() -> None:
    aliases, clusters = [f"c{n}" for n in range(4)], []
    for target in aliases:
        gone = [
            DeleteTopic(target, f"{source}.t{n}", "id", f"{source}-{target}", source, f"t{n}", "not-taken")
            for source in aliases
            if source != target
            for n in range(500)
        ]
        clusters.append(ClusterPlan(target, f"dc-{target}", tuple(gone)))
    odd = DeleteTopic("c0", "renamed", "id", "c1-c0", "c1", "t0", "not-taken")
    text = commented(plan_of(*clusters, ClusterPlan("c0", "dc", (odd,))))
    assert "left out" not in text
    assert {text.count(f"`t{n}`") for n in range(500)} <= {4, 5}
    assert "`renamed` (of `t0`)" in text
    for source in aliases:
        assert f"`{source}-{'c1' if source == 'c0' else 'c0'}` as `{source}.<topic>`" in text


def test_copies_of_one_original_by_two_flows_keep_their_names() -> None:
    """They share their original, and nothing else."""
    gone = [DeleteTopic("eu-west", f"copy-{flow}", "id", flow, "us-east", "orders", "not-taken") for flow in ("a", "b")]
    text = commented(plan_of(ClusterPlan("eu-west", "dc2", tuple(gone))))
    assert "`copy-a` (of `orders`)" in text
    assert "`copy-b` (of `orders`)" in text
    again = [
        DeleteTopic("eu-west", name, "id", "a", "us-east", "orders", "renamed") for name in ("x", "y", "my-orders")
    ]
    text = commented(plan_of(ClusterPlan("eu-west", "dc2", tuple(again))))
    assert "`x` (of `orders`), `y` (of `orders`)" in text
    assert "`my-orders` **deleted" in text


def test_flows_that_stop_copying_say_what_stays() -> None:
    stops = tuple(StoppedTopic(f"orders-{n}", f"us-east.orders-{n}", 100_000 + n) for n in range(1_000))
    change = Change("flow", "us-east-eu-west", "changes", (FieldChange("topics.include", "orders.*", None),), stops)
    text = commented(plan_of(ClusterPlan("eu-west", "dc2", changes=(change,))))
    assert all(f"`us-east.orders-{n}` ({100_000 + n:,})" in text for n in range(1_000))
    assert text.index("no longer followed") < text.index("topics.include")


def test_settings_that_change_alike_are_one_line() -> None:
    wanted = (ConfigChange("retention.ms", "1", "2", "source-change"),)
    steps = [AlterConfig(new("eu-west", "us-east", f"t{n}").topic, "id", wanted) for n in range(40)]
    text = plan_markdown(plan_of(ClusterPlan("eu-west", "dc2", tuple(steps))))
    assert "- eu-west: **40 topics**: `retention.ms` `1` → `2`, changed at the source since the last apply\n" in text


def test_copies_whose_names_do_not_tell_their_originals_name_both() -> None:
    deleted = [DeleteTopic("eu-west", name, "id", "f", "us-east", f"orders-{name}", "renamed") for name in ("a", "b")]
    text = plan_markdown(plan_of(ClusterPlan("eu-west", "dc2", tuple(deleted))))
    assert "`a` (of `orders-a`), `b` (of `orders-b`)" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--longest", "64000"], "--format markdown"),
        (["--whole", "x.md", "--format", "json"], "--format markdown"),
        (["--longest", "9999", "--format", "markdown"], "10000"),
    ],
)
def test_a_bound_is_one_of_markdown(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "nowhere.yaml", *options]) == 2
    assert said in capsys.readouterr().err
