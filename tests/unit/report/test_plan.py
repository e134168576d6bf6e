"""One plan, three printers: text for a terminal, JSON for programs, Markdown for a pull request."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from reconciler.cli.planning import show_plan
from reconciler.model.acls.binding import Binding
from reconciler.model.acls.own_access import Access
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.padding import Padding
from reconciler.model.planning.steps import CreateTopic, GrantAcl, Plan, RecordOwnership, RevokeAcl, Step
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import InForce, digest_into
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.report.plan.outcome import outcome_lines
from reconciler.report.plan.to_json import action, outcome_json, plan_json
from reconciler.report.plan.to_markdown import plan_markdown
from reconciler.report.plan.to_text import plan_text
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, made, plan_of, record, topic, topology

DECLARED = topology(flow(include=["orders", "users", "audit"], tasks=2), flow(WEST, EAST, include=["missing"]))
MAY_WRITE_MARKERS = Access(frozenset({"ALTER", "DESCRIBE"}))
EAST_NOW = cluster(
    EAST,
    topic("orders", 6, configs={"retention.ms": "86400000", "max.message.bytes": "2000000"}),
    topic("users", 12),
    topic("audit", 8, configs={"retention.ms": "5"}),
)


def west_now() -> tuple[DesiredTopic, ...]:
    return desired_topics(DECLARED, {EAST: EAST_NOW, WEST: cluster(WEST)}, [WEST])


def example() -> Plan:
    """Two topics to make, one that grows and whose retention was changed at the target, one that is left alone."""
    audit = next(one for one in west_now() if one.source_topic == "audit")
    former = replace(audit, name="us-east.former", source_topic="former")
    changed = replace(made(audit), partitions=4, configs={**audit.configs, "retention.ms": "1"})
    owned = [record(audit, DECLARED), record(former, DECLARED)]
    west = cluster(WEST, changed, made(former), owned=owned, internal=False)
    return plan_of(DECLARED, EAST_NOW, replace(west, access=MAY_WRITE_MARKERS))


def nothing() -> Plan:
    owned = [record(one, DECLARED) for one in west_now()]
    west = cluster(WEST, *(made(one) for one in west_now()), owned=owned)
    return plan_of(DECLARED, *(in_force(one) for one in (EAST_NOW, west)))


def in_force(here: ObservedCluster, digest: str | None = None) -> ObservedCluster:
    """Have a declaration put in force at a cluster, by default the one that is tested."""
    return replace(here, in_force=InForce(digest or digest_into(DECLARED, here.alias), 1_800_000_000.0, "ops@host"))


def as_text(plan: Plan, colour: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=60, soft_wrap=True, highlight=False, force_terminal=colour, no_color=not colour).print(
        plan_text(plan)
    )
    return file.getvalue()


TRANSACTIONS = "exact except across a coordinator's restart, where shifted runs are recorded"
EXPECTED = f"""\
payments · 2 target clusters, 2 flows · observed just now
+ add   ~ change   ▶ flow that starts or changes   · left as it is   ! worth knowing

us-east (dc-us-east)
    no changes
  ▶ flow   eu-west → us-east   1 task, 0 topics
             offsets  identical   each copy has one original and only we write there
             fill     transactions   {TRANSACTIONS}; markers need ALTER on the cluster
  ! note   flow eu-west-us-east   no topic of eu-west matches; it waits for one
  ! note   flow eu-west-us-east   item missing of topics.include matches no topic of eu-west
  ~ force  first apply, digest {digest_into(DECLARED, EAST)}

eu-west (dc-eu-west)
  + state  anabranch.payments.owned.internal, anabranch.payments.status.internal
  + topic  us-east.orders   6 partitions, replication 3, identical offsets
             max.message.bytes   2000000   as at the source
             retention.ms       86400000   as at the source
  + topic  us-east.users    12 partitions, replication 3, identical offsets
             max.message.bytes    1048588   the default at the source
             retention.ms       604800000   the default at the source
    each of these 2 topics also gets
             cleanup.policy                                delete   the default at the source
             compression.type                            producer   for identical offsets
             message.timestamp.after.max.ms   9223372036854775807   for identical offsets
             message.timestamp.before.max.ms  9223372036854775807   for identical offsets
             message.timestamp.type                    CreateTime   for identical offsets
             min.insync.replicas                                2   for identical offsets
             retention.bytes                                   -1   the default at the source
             unclean.leader.election.enable                 false   for identical offsets
  ~ topic  us-east.audit
             partitions    4 → 8   as at the source
             retention.ms  1 → 5   changed at the target since the last apply
  ▶ flow   us-east → eu-west   2 tasks, 3 topics
             offsets  identical   each copy has one original and only we write there
             fill     markers   exact
  · left   us-east.former   flow us-east-eu-west no longer takes us-east's former; --allow-delete deletes it
  ~ force  first apply, digest {digest_into(DECLARED, WEST)}

2 to add, and 2 topics of our own; 1 to change, 0 to delete.
"""


def test_text() -> None:
    assert as_text(example()) == EXPECTED


def test_text_of_a_plan_with_nothing_to_do() -> None:
    assert nothing().changes_nothing
    assert as_text(nothing()).count("    no changes\n") == 2
    assert as_text(nothing()).endswith("\nNothing to do: 0 to add, 0 to change, 0 to delete.\n")


def test_which_declaration_is_in_force_is_shown_by_every_printer() -> None:
    mine, since = digest_into(DECLARED, WEST), "is in force since 2027-01-15 08:00:00 UTC, applied by ops@host"
    same = nothing()
    assert f"  = force  digest {mine} {since}\n" in as_text(same)
    quiet = f"- eu-west (dc-eu-west): no changes; digest {mine} {since.replace('@', '@&#8203;')}\n"
    assert quiet in plan_markdown(same), "nobody is called"
    told = {"digest": mine, "since": 1_800_000_000.0, "by": "ops@host", "owner": None}
    assert plan_json(same)["clusters"][1]["declared"] == {"digest": mine, "in_force": told, "recorded": False}

    west = cluster(WEST, *(made(one) for one in west_now()), owned=[record(one, DECLARED) for one in west_now()])
    other = plan_of(DECLARED, in_force(EAST_NOW), in_force(west, "another"))
    unknown = "what it declares is not recorded there, so what changes against it is not known"
    said = f"digest another {since}; {unknown}; apply puts this declaration in force, digest {mine}"
    assert (other.is_empty, other.changes_nothing, other.to_put_in_force) == (True, False, ((WEST, mine),))
    assert f"  ~ force  {said}\n" in as_text(other)
    assert f"- eu-west: {said.replace('@', '@&#8203;')}\n" in plan_markdown(other)
    assert plan_json(other)["clusters"][1]["declared"] == {
        "digest": mine,
        "in_force": told | {"digest": "another"},
        "recorded": False,
    }
    assert as_text(other).endswith("\n\n0 to add, 1 to change, 0 to delete.\n")


def test_colour_is_the_consoles_business() -> None:
    assert "\x1b[" not in as_text(example())
    assert "\x1b[32m+\x1b[0m" in as_text(example(), colour=True)


def test_markup_in_names_is_printed_as_it_is() -> None:
    plan = example()
    odd = replace(plan, topology="[bold]payments[/bold]")
    assert as_text(odd).startswith("[bold]payments[/bold] · ")


def test_json() -> None:
    value = json.loads(json.dumps(plan_json(example())))
    assert list(value) == ["format", "topology", "digest", "summary", "clusters", "notices", "deployments"]
    assert (value["format"], value["topology"], value["digest"]) == (1, "payments", DECLARED.digest)
    assert value["summary"] == {"add": 4, "own": 2, "change": 1, "delete": 0, "end": 0, "deploy": 0}
    west = value["clusters"][1]
    assert (west["alias"], west["datacenter"]) == (WEST, "dc-eu-west")
    assert [(step["action"], step["topic"]) for step in west["steps"]] == [
        ("create-internal-topic", "anabranch.payments.owned.internal"),
        ("create-internal-topic", "anabranch.payments.status.internal"),
        ("create-topic", "us-east.orders"),
        ("create-topic", "us-east.users"),
        ("add-partitions", "us-east.audit"),
        ("alter-config", "us-east.audit"),
    ]
    create, grow, alter = west["steps"][2], west["steps"][4], west["steps"][5]
    assert create["source"] == {"cluster": EAST, "topic": "orders"}
    assert (create["partitions"], create["replication_factor"], create["offsets"]) == (6, 3, "identical")
    assert {"key": "retention.ms", "value": "86400000", "reason": "source"} in create["settings"]
    assert (grow["found"], grow["partitions"]) == (4, 8)
    assert alter["changes"] == [{"key": "retention.ms", "old": "1", "new": "5", "reason": "target-change"}]
    assert west["flows"][0]["tasks"] == 2
    assert west["left_alone"] == [
        {
            "subject": "us-east.former",
            "message": "flow us-east-eu-west no longer takes us-east's former; --allow-delete deletes it",
        }
    ]


def test_markdown() -> None:
    lines = plan_markdown(example()).splitlines()
    assert lines[0] == "### payments: 2 to add, and 2 topics of our own; 1 to change, 0 to delete."
    assert [line.removeprefix("#### ") for line in lines if line.startswith("#### ")] == [
        *("Worth knowing: 2 notes", "Partitions that grow: 1 topic", "Settings that change: 1 topic"),
        *("Put in force: 2 clusters", "Left alone: 1 note", "Targets: 2 clusters", "All flows: 2 flows"),
        "New: 2 topics",
    ]
    assert "- eu-west (dc-eu-west): 2 to add, and 2 topics of our own; 1 to change, 0 to delete." in lines
    new = "- `+` eu-west: `us-east.orders`, by flow `us-east-eu-west`: 6 partitions, replication 3, identical offsets"
    (made,) = (line for line in lines if line.startswith(new))
    assert made.removeprefix(new) == (
        "; `max.message.bytes` `2000000` (as at the source); `retention.ms` `86400000` (as at the source)"
    )
    (alike,) = (line for line in lines if line.startswith("- each of the 2 copies below also gets `cleanup.policy`"))
    assert "`min.insync.replicas` `2` (for identical offsets)" in alike
    assert "- eu-west: `us-east.audit`: partitions 4 → 8, as at the source" in lines
    changed = "`retention.ms` `1` → `5`, changed at the target since the last apply"
    assert f"- eu-west: `us-east.audit`: {changed}" in lines
    former = "`us-east.former`: flow us-east-eu-west no longer takes us-east's former; --allow-delete deletes it"
    assert f"- eu-west: {former}" in lines
    # No mark begins a list in the list.
    assert not [line for line in lines if line.startswith(("- +", "- -", "- ~"))]


def test_markdown_of_a_plan_with_nothing_to_do() -> None:
    assert plan_markdown(nothing()).splitlines()[0].endswith("Nothing to do: 0 to add, 0 to change, 0 to delete.")
    assert "- eu-west (dc-eu-west): no changes; digest" in plan_markdown(nothing())


def test_markdown_keeps_odd_text_inside_its_cell() -> None:
    plan = replace(example(), topology="a|b *c* <script>")
    assert plan_markdown(plan).startswith("### a\\|b \\*c\\* \\<script\\>: ")


@pytest.mark.parametrize("printed", [as_text(example()), plan_markdown(example()), json.dumps(plan_json(example()))])
def test_every_printer_names_every_topic_of_the_plan(printed: str) -> None:
    for step in example().steps:
        assert step.name in printed


READING = Binding("topic", ResourcePattern("us-east.pay", prefixed=True), "User:alice", "READ")
BARRED = Binding("topic", ResourcePattern("us-east.orders"), "User:bo|b", "DESCRIBE", "DENY", "10.0.0.1")
ACLS = (
    GrantAcl(WEST, READING, "us-east-eu-west"),
    RevokeAcl(WEST, BARRED, "us-east-eu-west"),
    RevokeAcl(WEST, READING, "us-east-eu-west", is_kept=True),
)


def test_acls_are_shown_by_every_printer() -> None:
    (part,) = plan_of(topology(), EAST_NOW, cluster(WEST)).clusters
    plan = Plan("payments", "digest", (replace(part, steps=ACLS),))
    text, markdown, value = as_text(plan), plan_markdown(plan), plan_json(plan)
    assert (
        "  + acl    User:alice       READ on topic us-east.pay* (prefixed)   as the originals of flow us-east" in text
    )
    assert "  - acl    DENY User:bo|b   DESCRIBE on topic us-east.orders, from 10.0.0.1   the originals of flow" in text
    assert "no longer have it; it stays, as another topology granted it too" in text
    assert "1 to add, 0 to change, 2 to delete." in text
    why = "the originals of flow us-east-eu-west no longer have it"
    denied = f"<code>DENY User:bo&#124;b</code> DESCRIBE on topic `us-east.orders`, from 10.0.0.1; {why}"
    assert f"- `-` eu-west: {denied}" in markdown.splitlines()
    assert value["summary"] == {"add": 1, "own": 0, "change": 0, "delete": 2, "end": 0, "deploy": 0}
    grant, revoke, _ = value["clusters"][0]["steps"]
    assert (grant["action"], grant["acl"], "topic" in grant) == ("grant-acl", str(READING), False)
    assert (revoke["action"], revoke["binding"]["host"]) == ("revoke-acl", "10.0.0.1")


def steps_of_every_kind() -> tuple[Step, ...]:
    (create, *_) = (step for step in example().steps if isinstance(step, CreateTopic))
    return (*example().steps, *ACLS, RecordOwnership(create.topic, "id", "interrupted"))


def test_a_record_that_is_written_alone_is_shown_by_every_printer() -> None:
    (part,) = plan_of(topology(), EAST_NOW, cluster(WEST)).clusters
    step = steps_of_every_kind()[-1]
    plan = Plan("payments", "digest", (replace(part, steps=(step,)),))
    assert "ownership  recorded   the apply that made it was interrupted" in as_text(plan)
    assert "- eu-west: `us-east.orders`: ownership recorded, the apply that made it was interrupted" in plan_markdown(
        plan
    )
    assert plan_json(plan)["clusters"][0]["steps"][0]["reason"] == "interrupted"


def aggregated() -> Plan:
    """Two sources whose orders would be one topic, begun as one's copy, and users of one whose log begins above 0."""
    identity = ReplicationPolicy("identity")
    declared = topology(flow(policy=identity), flow("ap-south", policy=identity, include=["orders"]))
    users = replace(topic("users", 2), starts=(7_000_000, 0), ends=(8_000_000, 9))
    south = cluster("ap-south", topic("orders"))
    begun = topology(flow(policy=identity, include=["orders"]))
    west = carried_out(plan_of(begun, cluster(EAST, topic("orders")), cluster(WEST)), cluster(WEST))
    return plan_of(declared, cluster(EAST, topic("orders"), users), south, west)


def test_what_is_not_started_and_what_is_padded_is_shown_by_every_printer() -> None:
    text, markdown, value = as_text(aggregated()), plan_markdown(aggregated()), plan_json(aggregated())
    said = "not started: orders is the copy of us-east's orders, with identical offsets"
    assert f"  ✗ skip   orders   ap-south's orders, {said}" in text
    assert "offsets  translated   none of its topics can be copied" in text
    assert "offsets  identical   each copy has one original and only we write there" in text
    padded = "7,000,000 offsets   in 1 partition whose logs begin above 0: about 1 s and 6 MB, deleted again"
    assert f"padding  {padded}" in text
    assert text.endswith("\n2 to add, 2 to change, 0 to delete. 1 topic not started.\n"), "a flow begins, too"
    assert (
        f"- ✗ eu-west: `orders` (ap-south's `orders`): **not started**: {said.removeprefix('not started: ')}"
        in markdown
    )
    assert f"padding: {padded.replace('   ', ' (')})" in markdown
    west = value["clusters"][-1]
    assert [one["flow"] for one in west["not_started"]] == ["ap-south-eu-west"]
    assert west["flows"][0]["padding"] == {"offsets": 7_000_000, "partitions": 1, "seconds": 1.4, "bytes": 5_600_000}


@pytest.mark.parametrize(
    ("offsets", "cost"),
    [(1, "about 1 s and 1 bytes"), (500_000_000, "about 100 s and 400 MB"), (10**10, "about 33 min and 8 GB")],
)
def test_what_padding_costs(offsets: int, cost: str) -> None:
    plan = aggregated()
    west = plan.clusters[-1]
    flows = tuple(replace(one, padding=Padding(offsets, 1)) for one in west.flows)
    assert cost in as_text(replace(plan, clusters=(*plan.clusters[:-1], replace(west, flows=flows))))


def test_what_became_of_a_plan() -> None:
    steps = steps_of_every_kind()
    problem = Problem("AB314", "cluster eu-west, topic x", "refused", "mend it")
    outcome = Outcome(list(steps[2:]), [Failure(steps[0], problem)], [Skipped(steps[1], "it depends on that")])
    lines = [line.plain for line in outcome_lines(outcome)]
    assert lines[0] == "  done      eu-west  make us-east.orders"
    assert "  done      eu-west  grow us-east.audit to 8 partitions" in lines
    assert "  done      eu-west  set retention.ms of us-east.audit" in lines
    assert "  done      eu-west  record that us-east.orders is ours" in lines
    assert "  failed    eu-west  make anabranch.payments.owned.internal for our own state" in lines
    assert f"  done      eu-west  grant {READING}" in lines
    assert f"  done      eu-west  revoke {BARRED}" in lines
    assert lines[-2:] == ["8 done, 1 failed, 1 not done.", "What was in force stays in force."]
    assert (
        list(outcome_lines(Outcome(in_force=[EAST, WEST])))[-1].plain
        == "This declaration is now in force at us-east, eu-west."
    )

    value = outcome_json(outcome)
    assert [one["action"] for one in value["done"]] == [action(step) for step in steps[2:]]
    assert value["failed"][0]["problem"]["code"] == "AB314"
    assert value["skipped"] == [
        {
            "action": "create-internal-topic",
            "cluster": WEST,
            "topic": "anabranch.payments.status.internal",
            "why": "it depends on that",
        }
    ]
    assert not outcome.is_complete


def test_what_is_taken_away_is_printed_alike_by_all() -> None:
    records = [record(one, DECLARED) for one in west_now()]
    gone, *there = records
    west = in_force(cluster(WEST, *(topic(one.name) for one in there), owned=records))
    plan = destroy_plan(DECLARED, {WEST: west}, [WEST])
    text, markdown, value = as_text(plan), plan_markdown(plan), plan_json(plan)
    summed = f"0 to add, 1 to change, {len(there)} to delete."
    assert there
    assert summed in text
    assert summed in markdown
    assert value["summary"] == {"add": 0, "own": 0, "change": 1, "delete": len(there), "end": 0, "deploy": 0}
    assert "destroy leaves nothing in force" in text
    for one in there:
        assert f"- topic  {one.name}" in text
    names = ", ".join(f"`{one.name}`" for one in there)
    taken = "**deleted, with all records**; made by this topology (from us-east, by flow `us-east-eu-west`)"
    assert f"- `-` eu-west: **2 topics** {taken}: {names}\n" in markdown
    assert f"~ topic  {gone.name}" in text
    assert f"- eu-west: `{gone.name}`: ownership forgotten, it is not there any more\n" in markdown
    (told,) = value["clusters"]
    assert told["declared"]["digest"] == "destroyed"
    steps = {step["topic"]: step for step in told["steps"]}
    assert steps[gone.name] == {
        "action": "forget-topic",
        "topic": gone.name,
        "flow": gone.flow,
        "source": {"cluster": EAST, "topic": gone.source_topic},
    }
    for one in there:
        facts = {"action": "delete-topic", "topic_id": one.topic_id, "reason": "destroyed"}
        assert steps[one.name] | facts == steps[one.name]
    said = [line.plain for line in outcome_lines(Outcome(list(plan.steps), closed=[WEST]))]
    assert f"  done      eu-west  delete {there[0].name}" in said
    assert f"  done      eu-west  forget {gone.name}, which is gone" in said
    assert said[-1] == "Nothing is in force any more at eu-west: `anabranch apply` makes the copies anew."


@pytest.mark.parametrize("asks", [True, False])
def test_who_is_asked_sees_the_plan_also_where_the_output_is_json(
    capsys: pytest.CaptureFixture[str], asks: bool
) -> None:
    """What is printed is for programs, and comes behind with what became of the plan."""
    show_plan(example(), "json", asks)
    said = capsys.readouterr()
    assert (said.out, "us-east.orders" in said.err) == ("", asks)
    show_plan(example(), "text", asks)
    said = capsys.readouterr()
    assert ("us-east.orders" in said.out, said.err) == (True, "")
