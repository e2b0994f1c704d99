"""Faults as the journal tells them: a strike a node, its moments mapped to the run's clock by the rig's own offsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rig.journal.records import FaultChanged, FaultKind, FaultState
from rig.lab.audit.rigs import RigAccount

TICK_S = 0.01  # a node's clock on Linux (/proc/uptime) is cut off to hundredths


@dataclass(frozen=True)
class Strike:
    """What one script did on one node. `marks` by event, and `proof`: when the strike had been proved."""

    fault: int
    kind: FaultKind  # of a double: of the half on this node
    node: str
    others: tuple[str, ...]  # the nodes on the other side of a partition
    model: str | None
    hold_s: float
    last: FaultState
    said: dict[str, dict[str, Any]]
    marks: dict[str, float] = field(default_factory=dict[str, float])
    together: dict[str, float] = field(default_factory=dict[str, float])  # the marks of the whole fault
    error_s: float = 0.0
    early: bool = False  # the hold was ended before its time
    ways: tuple[str, ...] = ("in", "out")  # that a partition cuts
    starts: dict[int, float] = field(default_factory=dict[int, float])  # of the pids, on the run's clock, if told

    @property
    def about(self) -> str:
        return f"fault {self.fault}: {self.kind} on {self.node}"

    @property
    def struck_t(self) -> float | None:
        return self.marks.get("struck")

    @property
    def healed_t(self) -> float | None:
        return self.marks.get("healed")

    @property
    def pids(self) -> list[int]:
        """Those that the strike is proved on."""
        return _pids(self.said.get("struck", {}).get("pids", ""))

    @property
    def touched(self) -> set[int]:
        """Every pid that it may have signalled."""
        named = [*(event.get("pids", "") for event in self.said.values())]
        return {pid for text in named for pid in _pids(text)} | set(self.pids)

    @property
    def main(self) -> int:
        return next(iter(_pids(self.said.get("struck", {}).get("main", ""))), 0)

    @property
    def new_main(self) -> int:
        return next(iter(_pids(self.said.get("healed", {}).get("new_main", ""))), 0)

    @property
    def table(self) -> str:
        """Where its rules are: a table of nft or an anchor of pf."""
        struck = self.said.get("struck", {})
        return str(struck.get("table", struck.get("anchor", "")))

    def packets(self, event: str) -> int:
        return int(self.said.get(event, {}).get("packets", "0") or "0")


def strikes(rig: RigAccount) -> Iterator[Strike]:
    """Every script that ran, by the last record of its fault. A fault that was skipped before its lease has none."""
    for records in rig.faults.values():
        last = records[-1]
        acting = [node for node in last.nodes if isinstance(last.evidence.get(node), dict)]
        several = [_strike(rig, last, records, node, acting) for node in acting]
        for strike in several:
            yield replace(strike, together=_together(several))


def _together(several: list[Strike]) -> dict[str, float]:
    """A fault on several nodes reaches a state with the first of them, and is healed with the last."""
    names = {name for strike in several for name in strike.marks}
    moments = {name: [strike.marks[name] for strike in several if name in strike.marks] for name in names}
    return {name: max(ts) if name == "healed" else min(ts) for name, ts in moments.items()}


def _strike(rig: RigAccount, last: FaultChanged, records: list[FaultChanged], node: str, acting: list[str]) -> Strike:
    told = cast("dict[str, Any]", last.evidence[node])
    said = {name: cast("dict[str, Any]", event) for name, event in told.items() if isinstance(event, dict)}
    leased = next((record for record in records if record.state == "leased"), records[-1])
    offset = rig.offset(node, leased.t)
    shift_s = 0.0 if offset is None else offset.offset_s
    shift_s += TICK_S / 2
    marks = {name: float(event["node_t"]) + shift_s for name, event in said.items() if "node_t" in event}
    proof = said.get("struck", {}).get("proof_t")
    if proof is not None:
        marks["proof"] = float(proof) + shift_s
    items = [item for event in said.values() for item in str(event.get("pids", "")).split()]
    ticks = {item.partition(":")[0]: item.partition(":")[2] for item in items}
    return Strike(
        fault=last.fault,
        kind=last.halves.get(node, last.fault_kind),
        node=node,
        others=tuple(name for name in last.nodes if name not in acting),
        model=last.model,
        hold_s=last.hold_s,
        last=last.state,
        said=said,
        marks=marks,
        error_s=TICK_S + (0.0 if offset is None else offset.error_s),
        early=said.get("healing", {}).get("why") not in (None, "hold over"),
        ways=("in", "out") if last.direction == "both" else (last.direction,),
        starts={int(pid): int(tick) / 100 + shift_s for pid, tick in ticks.items() if tick.isdigit()},
    )


def _pids(text: object) -> list[int]:
    """`pid:start` items."""
    words = [word.partition(":")[0] for word in str(text).split()]
    return [int(word) for word in words if word.isdigit()]
