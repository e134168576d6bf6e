"""`anabranch describe`: one flow, or one topic, with all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, as_usage, load_with_fields
from reconciler.cli.completing import flow_names
from reconciler.cli.helping import group
from reconciler.cli.look.watching import Show, starting, tell
from reconciler.cli.shared_options import Output, declared_flow

if TYPE_CHECKING:
    from reconciler.operate.watching import StatusView
    from reconciler.report.describe import DescribedFlow, DescribedTopic

describe = group("Show one flow, or one topic, with all that is known of it.")


@describe.command("flow")
@as_usage
def flow(
    name: Annotated[str, typer.Argument(metavar="FLOW", autocompletion=flow_names, help="Name of a declared flow.")],
    files: Files,
    output: Output = "text",
) -> None:
    """Show what is declared of a flow and by which line, how it runs, its topics and groups, and what is on record."""
    from reconciler.operate.recalling import events
    from reconciler.operate.watching import status_lookout
    from reconciler.report.describe import DescribedFlow, flow_json, flow_lines
    from reconciler.report.explain import explained
    from reconciler.report.status.unapplied import unapplied_lines

    topology, fields = load_with_fields(files)
    declared = declared_flow(topology, name, "FLOW")
    (told,) = explained(topology, [declared], [], fields)

    def made(look: StatusView) -> DescribedFlow:
        found, _ = ((), ()) if look.failures else events(topology, [declared.target])
        about = [one for one in found if one.flow in ("", name)]
        summary = next((one for one in look.summaries() if one.name == name), None)
        return DescribedFlow(declared, told, summary, look.last_looks, about, look.now, starting(files))

    show = Show(
        lines=lambda look: [*flow_lines(made(look)), *unapplied_lines(topology, look.in_force)],
        value=lambda look: flow_json(made(look), sorted(look.failures)),
    )
    tell(status_lookout(topology, [declared.target]), show, output, None)


@describe.command("topic")
@as_usage
def topic(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of a topic, at its source or its target.")],
    files: Files,
    output: Output = "text",
) -> None:
    """Show what each flow does with a topic and why, and its partitions."""
    from reconciler.operate.watching import status_lookout
    from reconciler.report.describe import DescribedTopic, topic_json, topic_lines, topics_of
    from reconciler.report.explain import explained
    from reconciler.report.status.lag import lag_rows

    topology, _ = load_with_fields(files)
    originals = topics_of(name, topology.flows)

    def made(look: StatusView) -> list[DescribedTopic]:
        described = []
        for one in topology.flows:
            original = originals[one.name]
            (told,) = explained(topology, [one], [original], {})
            rows = lag_rows([one], look.statuses, look.now, original)
            described.append(DescribedTopic(one.name, (one.source, one.target), told["topics"][0], rows))
        return described

    show = Show(
        lines=lambda look: topic_lines(name, made(look)),
        value=lambda look: topic_json(name, made(look), look.now, sorted(look.failures)),
    )
    tell(status_lookout(topology, None), show, output, None)
