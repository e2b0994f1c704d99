"""Names do not resolve on a node: its resolvers and multicast DNS are out of its reach."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

from pydantic import field_validator

from rig.config.fields import Text
from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode


class NameResolutionPlan(KindPlan):
    resolvers: list[Text] | None = None  # their addresses; None: those that the node itself asks

    @field_validator("resolvers")
    @classmethod
    def _addresses(cls, resolvers: list[str] | None) -> list[str] | None:
        for resolver in resolvers or []:
            ip_address(resolver)
        return resolvers


def _values(acting: Acting[NameResolutionPlan]) -> Mapping[str, str]:
    return {"peers": " ".join(acting.settings.resolvers or ())}


KIND = FaultKind(
    name="name-resolution",
    place=19,
    summary="DNS to the node's resolvers and multicast DNS (`.local`) are dropped; cached names still resolve",
    struck_by="resolvers that had answered a query do not, and the rule's counters rise",
    healed_by="the rules are gone, the resolvers answer",
    wants="perl; a resolver on another machine; pf, nftables, or iptables where nft is missing",
    script="name-resolution.sh",
    aim=SingleNode(),
    effect="elsewhere",
    recovery_s=1.0,
    settings=NameResolutionPlan,
    values=_values,
    needs=frozenset({"filter"}),
    right="cut",
)
