"""A packet filter between two sides of the cluster, IPv4 and IPv6; established connections die."""

from __future__ import annotations

from rig.faults.plan.cutting import PartitionPlan
from rig.faults.plan.kind import FaultKind, Split

KIND = FaultKind(
    name="partition",
    place=4,
    summary="a packet filter between two sides, IPv4 and IPv6; established connections die",
    struck_by="probes that had answered do not, and the rule's counters rise",
    healed_by="the rules are gone, probes answer",
    wants="pf, nftables, or iptables where nft is missing",
    script="partition.sh",
    aim=Split(),
    effect="paths-cut",
    recovery_s=22.0,  # new requests are served about 22 s after the heal
    settings=PartitionPlan,
    needs=frozenset({"filter"}),
    right="cut",
)
