"""Mirus: sources as Kafka Connect has them, and the file of its worker, whose producers write to the destination.

Source: its README and the classes `SourceConfigDefinition` and `MirusConfigDefinition`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reconciler.convert.clusters import ClusterKeys
from reconciler.convert.connect import CLASS, Connector
from reconciler.convert.flows import FlowFields, keys_of_clients, no_keys
from reconciler.convert.parts import FlowEnds, TopologyParts
from reconciler.convert.settings import CONTRADICTS, UNREADABLE, WITHOUT_EQUAL, Setting, Settings
from reconciler.convert.values import expressions, listed, whole
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.names.linear import group_numbers

DESTINATION = "destination"
_OLD_SERVERS = "destination.bootstrap.servers"
_ROUTER = "RegexRouter"
_JAVA_PART = re.compile(r"\$(?P<number>\d+)|\$\{(?P<name>\w+)\}|\\(?P<plain>.)")
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def convert(
    sources: Sequence[Connector], worker: tuple[Settings, str] | None, *, are_named: bool = False
) -> TopologyParts:
    """Return what sources of one worker declare.

    Args:
        sources: their configurations.
        worker: settings of the worker, and its file.
        are_named: whether clusters and flows are called after the sources, and keep their names when others come.

    Raises:
        DeclaredInputError: AB140, brokers are missing; AB142, a setting or a transformation has no equal.
    """
    parts = TopologyParts(left=[one.settings for one in sources])
    if worker is not None:
        parts.left.append(worker[0])
    for number, source in enumerate(sources, 1):
        for key in (CLASS, "name"):
            source.settings.pass_over(key)
        alias = f"source-{number}" if len(sources) > 1 else "source"
        if are_named:
            _source(parts, source, f"{source.name}-source", worker, source.name)
        else:
            _source(parts, source, alias, worker, "")
    return parts


def _source(
    parts: TopologyParts, source: Connector, alias: str, worker: tuple[Settings, str] | None, name: str
) -> None:
    settings = source.settings
    parts.put_cluster(alias, settings, _cluster_keys("consumer."), source.where)
    target = _destination(parts, source, alias, worker)
    fields = dict(parts.fields_of(settings, keys_of_clients(lambda name: (f"consumer.{name}",), no_keys)))
    if worker is not None:
        fields |= parts.fields_of(worker[0], keys_of_clients(no_keys, lambda name: (f"producer.{name}",)))
    fields |= _topics(settings, source.where) | _policy(settings)
    if (every := settings.first("monitor.poll.wait.ms")) is not None:
        fields[("refresh-interval",)] = (f"{max(1, whole(every) // 1_000)}s", every, "")
    if (tasks := settings.first("tasks.max")) is not None:
        fields[("tasks",)] = (whole(tasks), tasks, "")
    parts.flows[FlowEnds(alias, target, name)] = fields


def _destination(parts: TopologyParts, source: Connector, alias: str, worker: tuple[Settings, str] | None) -> str:
    """Put the cluster that a source writes to into the parts; return its alias, in a loop back that of the source."""
    clusters = parts.tree.values["clusters"]
    is_of_others = DESTINATION in clusters
    begins = "destination.consumer."
    known = source.settings.first(f"{begins}bootstrap.servers", _OLD_SERVERS)
    if known is None and worker is None:
        message = f"no {begins}bootstrap.servers names the destination"
        raise DeclaredInputError(
            Problem(UNREADABLE, source.where, message, "add it, or give the worker's file as well")
        )
    if known is not None:
        parts.put_cluster(DESTINATION, source.settings, _cluster_keys(begins, _OLD_SERVERS), source.where)
    elif worker is not None:
        parts.put_cluster(DESTINATION, worker[0], _cluster_keys(""), worker[1])
    if clusters[alias]["bootstrap"] == clusters[DESTINATION]["bootstrap"]:
        if not is_of_others:
            del clusters[DESTINATION]
        return alias
    return DESTINATION


def _topics(settings: Settings, where: str) -> FlowFields:
    """Return which topics a source takes: names, and one expression."""
    names, expression, several = (settings.first(f"topics.{key}") for key in ("whitelist", "regex", "regex.list"))
    if names is None and expression is None and several is None:
        message = "none of topics.whitelist, topics.regex and topics.regex.list names topics"
        raise DeclaredInputError(Problem(UNREADABLE, where, message, "add one of them"))
    taken = [name if _PLAIN_NAME.fullmatch(name) else re.escape(name) for name in listed(names)] if names else []
    # An expression may hold a comma, and is no list.
    taken += expressions(expression, of_groups=False, is_list=False) if expression else []
    taken += expressions(several) if several else []
    return {("topics", "include"): (taken, names or expression or several, "")}


def _policy(settings: Settings) -> FlowFields:
    """Return how copies are named: as originals, with a prefix or a suffix, or by a router."""
    before, behind = (settings.first(f"destination.topic.name.{key}") for key in ("prefix", "suffix"))
    added = [one for one in (before, behind) if one is not None and one.value]
    transforms = settings.first("transforms")
    names = listed(transforms) if transforms is not None else []
    if len(names) + bool(added) > 1:
        assert transforms is not None
        message = "several things rename topics one after the other"
        raise DeclaredInputError(transforms.problem(WITHOUT_EQUAL, message, "declare policy.rules by hand"))
    if transforms is not None and names:
        return _routed(settings, transforms, names[0])
    if added:
        begins, ends = ("" if one is None else one.value for one in (before, behind))
        return _renamed([{"from": "(.*)", "to": f"{begins}{_group(1, ends)}{ends}"}], added[0])
    return {("policy", "type"): ("identity", None, "topics keep their names")}


def _routed(settings: Settings, transforms: Setting, name: str) -> FlowFields:
    kind = settings.first(f"transforms.{name}.type")
    regex, replacement = (settings.first(f"transforms.{name}.{part}") for part in ("regex", "replacement"))
    if kind is None or kind.value.rpartition(".")[2] != _ROUTER:
        message = f"the transformation {name} is no {_ROUTER}, and has no equal"
        raise DeclaredInputError(
            transforms.problem(WITHOUT_EQUAL, message, "let what changes records run behind the copy")
        )
    if regex is None or replacement is None:
        message = f"the transformation {name} has no regex, or no replacement"
        raise DeclaredInputError(transforms.problem(CONTRADICTS, message, "add it"))
    (expression,) = expressions(regex, is_list=False)
    return _renamed([{"from": expression, "to": _replacement(expression, replacement.value)}], regex)


def _replacement(expression: str, text: str) -> str:
    """Return what a router makes of names, with groups as they are written here.

    Source: `Matcher.appendReplacement`: digits behind `$` belong to the number while there is such a group, and a
    backslash takes the next character as it is.
    """
    count, _ = group_numbers(expression)

    def made(found: re.Match[str]) -> str:
        if found["plain"] is not None:
            return found["plain"]
        if found["name"] is not None:
            return f"\\g<{found['name']}>"
        digits = found["number"]
        size = next((size for size in range(len(digits), 1, -1) if int(digits[:size]) <= count), 1)
        left = digits[size:]
        # A digit behind a backslash stands for itself, and behind a group as well.
        return _group(int(digits[:size]), left or text[found.end() :].removeprefix("\\")) + left

    return _JAVA_PART.sub(made, text)


def _group(number: int, following: str) -> str:
    return f"\\g<{number}>" if number == 0 or following[:1].isdigit() else f"\\{number}"


def _renamed(rules: list[dict[str, str]], origin: Setting) -> FlowFields:
    return {
        ("policy", "type"): ("rename", origin, ""),
        ("policy", "rules"): (rules, origin, ""),
        ("policy", "otherwise"): ("identity", origin, ""),
    }


def _cluster_keys(begins: str, older: str = "") -> ClusterKeys:
    def own(name: str) -> tuple[str, ...]:
        return (f"{begins}{name}", *((older,) if older.endswith(f".{name}") else ()))

    def shared(name: str) -> tuple[str, ...]:
        return (f"{begins}{name}",)

    def of_client(role: str, name: str) -> tuple[str, ...]:
        return shared(name) if role == "consumer" and begins else (f"{role}.{name}",)

    return ClusterKeys(own, shared, of_client)
