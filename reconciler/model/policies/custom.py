"""Policies that users write in Python: found by their entry point, called with care.

A topology names an entry point of the group `anabranch.policies`, never a module: only installed packages
can run. `ReplicationPolicy` calls it; whatever a class does wrong becomes a `PolicyFault` with a readable message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol, TypeAlias

from reconciler.model.base.installed import NotInstalled, load, told

GROUP = "anabranch.policies"

Options: TypeAlias = tuple[tuple[str, str], ...]
"""What a topology declares under `policy.options`, in the order of the keys."""


class NamingPolicy(Protocol):
    """What a policy class must have. It is called once with the options of the topology, a mapping of texts.

    One more method is not required, `upstream(self, remote: str) -> tuple[str, str] | None`: the alias of the cluster
    that a topic of this name was copied from and its name there, or None where the name does not show it. With it a
    topic that came through a flow's target goes no further, as under the default policy.

    Methods must return the same value at every call, in every process, and may be called by several threads.
    """

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the remote topic's name.

        Args:
            source: alias of the source cluster.
            topic: the name there.
        """


class PolicyFault(Exception):
    """A policy class cannot be used, or gives no usable answer; the message gives the reason."""


@lru_cache(maxsize=64)
def policy_of(name: str, options: Options) -> NamingPolicy:
    """Return the policy of an entry point.

    Args:
        name: of the entry point.
        options: handed to the class.

    Raises:
        PolicyFault: there is none, it cannot be imported, or it does not take these options.
    """
    made = _imported(name)
    handed: Mapping[str, str] = dict(options)
    try:
        policy: NamingPolicy = made(handed)
    except Exception as error:
        message = f"policy class {name} cannot be made with options {handed or 'of none'}: {told(error)}"
        raise PolicyFault(message) from None
    if not callable(getattr(policy, "remote_topic", None)):
        message = f"policy class {name} has no method remote_topic(source, topic)"
        raise PolicyFault(message)
    return policy


@lru_cache(maxsize=65536)
def remote_topic(name: str, options: Options, source: str, topic: str) -> str:
    """Return what a policy class calls the copy of `topic`.

    Raises:
        PolicyFault: it cannot be used, fails, gives no text or another one each time, or contradicts itself.
    """
    policy = policy_of(name, options)
    call = f"remote_topic({source!r}, {topic!r})"
    try:
        given, again = policy.remote_topic(source, topic), policy.remote_topic(source, topic)
    except Exception as error:
        message = f"policy class {name} fails at {call}: {told(error)}"
        raise PolicyFault(message) from None
    if not isinstance(given, str):
        message = f"policy class {name} gives {given!r} for {call}, no text"
        raise PolicyFault(message)
    if given != again:
        message = f"policy class {name} gives {given!r} and then {again!r} for {call}: it must be the same always"
        raise PolicyFault(message)
    said = upstream(name, options, given)
    if said not in (None, (source, topic)):
        message = f"policy class {name} gives {given!r} for {call}, and {said!r} for upstream({given!r})"
        raise PolicyFault(message)
    return given


@lru_cache(maxsize=65536)
def upstream(name: str, options: Options, remote: str) -> tuple[str, str] | None:
    """Return the alias and the topic from which a topic was copied by its name; None where the name does not show it.

    Raises:
        PolicyFault: the class cannot be used, fails, or gives something else than two texts.
    """
    policy = policy_of(name, options)
    ask: Callable[[str], object] | None = getattr(policy, "upstream", None)
    if ask is None:
        return None
    try:
        said = ask(remote)
    except Exception as error:
        message = f"policy class {name} fails at upstream({remote!r}): {told(error)}"
        raise PolicyFault(message) from None
    match said:
        case None:
            return None
        case (str(source), str(topic)):
            return source, topic
    message = f"policy class {name} gives {said!r} for upstream({remote!r}), neither None nor a pair of texts"
    raise PolicyFault(message)


def _imported(name: str) -> Callable[[Mapping[str, str]], NamingPolicy]:
    try:
        return load(GROUP, name, "policy class")
    except NotInstalled as fault:
        raise PolicyFault(str(fault)) from None
