"""Typed requests to the coordinator of one group: Kafka's classic membership protocol, for `lease`.

Like `Wire`, each method is one request and one answer. Error codes of a join or a heartbeat are part of their answers,
as they are how a coordinator steers its members; those of the other requests are raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reconciler.wire.protocol.library import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from reconciler.wire.protocol.values import BrokerError, ConnectionLost
from reconciler.wire.requests.client import Wire
from reconciler.wire.requests.lookups import GROUP

PROTOCOL_TYPE = "anabranch"
_PROTOCOL = "partitions"


@dataclass(frozen=True, slots=True)
class Membership:
    """A member as its coordinator identifies it; one that has not joined yet has no id, and generation -1.

    Attributes:
        node: the coordinator.
        group: name of the group.
        member: the id that the coordinator gave.
        generation: of the assignment that the member has.
    """

    node: int
    group: str
    member: str = ""
    generation: int = -1


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """What a join came to.

    Attributes:
        error: Kafka's error code, 0 when joined.
        member: the id that the coordinator gave, also with MEMBER_ID_REQUIRED.
        generation: the generation joined.
        leads: whether this member deals.
        members: metadata of all members by their ids, for the one that deals.
    """

    error: int
    member: str
    generation: int
    leads: bool
    members: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Listed:
    """A member as DescribeGroups lists it: its id, and the client id that it joined with."""

    member: str
    client_id: str


class GroupWire(Wire):
    """Requests to a group's coordinator. A join and a sync hold up whatever is sent behind them on their connection."""

    async def group_coordinator(self, group: str) -> int:
        """Return the node that coordinates `group`.

        Raises:
            ConnectionLost: no answer.
            BrokerError: refused, or there is none just now.
        """
        with self._begun_anew_when_lost():
            return await self.coordinator(group, GROUP)

    async def _ask(self, request: Any, node: int | None, patience: float = 0.0) -> Any:
        with self._begun_anew_when_lost():
            await self.connect()
            return await self._send(request, node, patience)

    @contextmanager
    def _begun_anew_when_lost(self) -> Iterator[None]:
        """The coordinator may be a broker that was not known before: the next request begins at the beginning."""
        try:
            yield
        except ConnectionLost:
            self._manager.forget_bootstrap()
            raise

    async def join(self, membership: Membership, metadata: bytes, session: float, patience: float) -> JoinAnswer:
        """Join the next generation, which begins when all members have joined or the patience with them is over.

        Args:
            membership: the member, as far as it is one.
            metadata: for the leader of the group, which assigns.
            session: seconds without a heartbeat after which the coordinator drops the member.
            patience: seconds that the coordinator waits for the other members to join.

        Raises:
            ConnectionLost: no answer.
        """
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=metadata)
        request = JoinGroupRequest(
            group_id=membership.group,
            session_timeout_ms=int(session * 1000),
            rebalance_timeout_ms=int(patience * 1000),
            member_id=membership.member,
            group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        answer = await self._ask(request, membership.node, patience)
        members = {member.member_id: bytes(member.metadata) for member in answer.members or ()}
        leads = not answer.error_code and answer.leader == answer.member_id
        return JoinAnswer(answer.error_code, answer.member_id or "", answer.generation_id, leads, members)

    async def sync(self, membership: Membership, shares: Mapping[str, bytes], patience: float) -> bytes:
        """Return this member's assignment, once the leader of the group has sent all of them.

        Args:
            membership: the member.
            shares: by member id, from the leader; empty from the others.
            patience: seconds to wait.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the generation has passed, or this is no member any more.
        """
        dealt = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=share)
            for member, share in shares.items()
        ]
        request = SyncGroupRequest(
            group_id=membership.group,
            generation_id=membership.generation,
            member_id=membership.member,
            group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=dealt,
        )
        answer = await self._ask(request, membership.node, patience)
        if answer.error_code:
            raise BrokerError(answer.error_code)
        return bytes(answer.assignment)

    async def heartbeat(self, membership: Membership) -> int:
        """Send a heartbeat; return the error code of the response, 0 when the generation goes on.

        Raises:
            ConnectionLost: no answer.
        """
        request = HeartbeatRequest(
            group_id=membership.group,
            generation_id=membership.generation,
            member_id=membership.member,
            group_instance_id=None,
        )
        return int((await self._ask(request, membership.node)).error_code)

    async def leave(self, membership: Membership, members: Sequence[str]) -> None:
        """Take `members` out of the group at once.

        Raises:
            ConnectionLost: no answer.
            BrokerError: refused; members that were none already are no error.
        """
        leaving = [LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=None) for member in members]
        # From version 3 on one request names several members.
        request = LeaveGroupRequest(group_id=membership.group, members=leaving, min_version=3)
        answer = await self._ask(request, membership.node)
        if answer.error_code:
            raise BrokerError(answer.error_code)

    async def members(self, membership: Membership) -> list[Listed]:
        """Return the group's members.

        Raises:
            ConnectionLost: no answer.
            BrokerError: refused, or the node does not coordinate the group any more.
        """
        request = DescribeGroupsRequest(groups=[membership.group], include_authorized_operations=False, max_version=5)
        (found,) = (await self._ask(request, membership.node)).groups
        if found.error_code:
            raise BrokerError(found.error_code)
        return [Listed(member.member_id, member.client_id) for member in found.members]
