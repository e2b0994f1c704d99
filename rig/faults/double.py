"""Two kinds at the same moment on different nodes."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, Pair, PairPlan

KIND = FaultKind(
    name="double",
    place=10,
    summary="two kinds at the same moment on different nodes (`halves`)",
    struck_by="each by its own",
    healed_by="each by its own",
    wants="`blast_radius: 2`",
    script="",
    aim=Pair(),
    effect="elsewhere",  # each of its halves has its own
    recovery_s=25.0,
    settings=PairPlan,
)
