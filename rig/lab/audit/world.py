"""A small run written out by hand, in all three accounts, that agree: what each test of the audit falsifies one of.

Times are on the run's clock; the cluster's own clock reads ZERO at its start. Two nodes, one model on each. Deadlines
are 5 s without a token and 8 s in all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from rig.journal.records import (
    AnyRecord,
    Cause,
    ClockOffset,
    FaultChanged,
    FaultKind,
    FaultState,
    How,
    Outcome,
    RequestEnded,
    RequestStarted,
)
from rig.journal.run import RunInfo
from rig.lab import ledger
from rig.lab.audit import cluster, rigs
from rig.lab.embedded import sampler

ZERO: Final = 1000.0
WALL: Final = 1_800_000_000.0
WALL_OFFSET_S: Final = WALL - ZERO
MODEL: Final = "lab/tiny-a"
ADDRESSES: Final = {"node-1": ["10.77.0.1", "fe80::77:1%eth0"], "node-2": ["10.77.0.2", "fe80::77:2%eth0"]}
GAP_S: Final = 0.055
TABLE: Final = "rig_x"
END_T: Final = 70.0

File: TypeAlias = tuple[str, str, int]  # node, process, pid


@dataclass
class World:
    """Lists to be falsified. `files` are the ledger's, one a writing process."""

    journal: list[AnyRecord] = field(default_factory=list[AnyRecord])
    files: dict[File, list[ledger.AnyEntry]] = field(default_factory=dict[File, list[ledger.AnyEntry]])
    samples: list[sampler.AnySample] = field(default_factory=list[sampler.AnySample])
    births: dict[int, tuple[str, float]] = field(default_factory=dict[int, tuple[str, float]])
    roles: dict[int, str] = field(default_factory=dict[int, str])

    def rig(self) -> rigs.RigAccount:
        return rigs.account(info(), sorted(self.journal, key=lambda record: record.t))

    def cluster(self) -> cluster.ClusterAccount:
        samples = sorted(self.samples, key=lambda sample: sample.t)
        return cluster.account(list(self.files.values()), samples, WALL)

    # the cluster's side

    def file(self, node: str, process: str, pid: int, t: float) -> list[ledger.AnyEntry]:
        key = (node, process, pid)
        if key not in self.files:
            opened = ledger.Opened(t=ZERO + t, node=node, process=process, pid=pid, wall_offset_s=WALL_OFFSET_S)
            self.files[key] = [opened]
        return self.files[key]

    def machine(self, node: str) -> list[ledger.AnyEntry]:
        return self.file(node, "machine", 10 * int(node[-1]), -6.0)

    def see(self, pid: int, t: float, state: str) -> None:
        node, born_t = self.births[pid]
        self.samples.append(
            sampler.ProcessSeen(t=ZERO + t, node=node, pid=pid, start=WALL + born_t, role=self.roles[pid], state=state)
        )

    def begin(self, node: str, role: str, pid: int, t: float, *, main: int = 0, detail: str = "") -> None:
        self.births[pid], self.roles[pid] = (node, t), role
        entries = self.machine(node) if role == "main" else self.file(node, "exo", main, t)
        entries.append(ledger.ProcessStarted(t=ZERO + t, node=node, role=role, pid=pid, start=WALL + t, detail=detail))
        self.see(pid, t + 0.03, "S")
        if role == "main":
            self.file(node, "exo", pid, t).append(ledger.Serving(t=ZERO + t + 0.7, node=node, pid=pid))

    def tree(self, node: str, first_pid: int, t: float) -> None:
        """A main with its tracker and its runner."""
        self.begin(node, "main", first_pid, t)
        self.begin(node, "tracker", first_pid + 1, t + 0.1, main=first_pid)
        self.runner(node, first_pid + 2, t + 0.5, main=first_pid)

    def runner(self, node: str, pid: int, t: float, *, main: int) -> None:
        self.begin(node, "runner", pid, t, main=main, detail=f"run-{pid} {MODEL} rank 0 of 1 port 50000")

    def end(self, pid: int, t: float, status: int) -> None:
        node, _ = self.births[pid]
        role = "main" if self.roles[pid] == "main" else "orphan"
        self.machine(node).append(ledger.ProcessExited(t=ZERO + t, node=node, role=role, pid=pid, status=status))
        self.see(pid, t + 0.02, "-")

    def filter(self, node: str, t: float, rules: list[str], *, packets: int = 0) -> None:
        change = ledger.FilterChanged(t=ZERO + t, node=node, command="nft", rules=rules, packets=packets)
        self.machine(node).append(change)
        self.samples.append(sampler.NetworkSeen(t=ZERO + t + 0.03, node=node, rules=rules, holding=bool(rules)))

    # the rig's side

    def fault(
        self,
        number: int,
        kind: FaultKind,
        nodes: list[str],
        moments: list[tuple[FaultState, float]],
        said: dict[str, Any],
        *,
        hold_s: float,
        model: str | None = None,
    ) -> None:
        first_t = moments[0][1]
        self.journal.append(ClockOffset(t=first_t - 0.1, node=nodes[0], offset_s=-ZERO, error_s=0.002))
        for state, at_t in moments:
            self.journal.append(
                FaultChanged(
                    t=at_t + 0.05,
                    fault=number,
                    fault_kind=kind,
                    state=state,
                    aim="a node",
                    nodes=nodes,
                    model=model,
                    hold_s=hold_s,
                    at_t=at_t,
                    at_error_s=0.007,
                    evidence={"id": f"x.{number}", nodes[0]: said},
                )
            )


def info() -> RunInfo:
    return RunInfo(
        run="world",
        wall_start=WALL,
        wall_start_iso="",
        rig_version="0",
        rig_revision=None,
        python="3",
        seed=1,
        duration_s=70.0,
        pace=10.0,
        embedded=True,
        behaviour="exo-0.3.70",
        inventory={"nodes": {name: {"addresses": addresses} for name, addresses in ADDRESSES.items()}},
        workload={"deadlines": {"connect": 1.0, "progress": 5.0, "total": 8.0}},
        plan={},
        schedule=[],
        expected_faults=4,
        target_revisions={},
        pids_allowed={},
        versions={},
    )


def request(  # noqa: PLR0913 (a request has that many sides)
    world: World,
    name: str,
    start_t: float,
    end_t: float,
    outcome: Outcome,
    *,
    how: How | None = None,
    ledger_end: ledger.RequestEnd | None = None,
    streamed: bool = True,
    tokens: int = 0,
    last_token_t: float | None = None,
    status: int | None = 200,
    main: int = 100,
    cause: Cause | None = None,
    evidence: str = "",
    reached: bool = True,
    node: str = "node-1",
    unclean_end: str | None = None,
    closed_t: float | None = None,
) -> None:
    """One request in both accounts; without `ledger_end` its main never wrote an end, at `closed_t` if not as usual."""
    finished = outcome == "completed"
    world.journal += [
        RequestStarted(
            t=start_t,
            id=name,
            source="probe" if name.startswith("p") else "load",
            client="client-1",
            model=MODEL,
            entry=node,
            planned_t=start_t,
            streamed=streamed,
            prompt_tokens=8,
            max_tokens=8,
        ),
        RequestEnded(
            t=end_t,
            id=name,
            outcome=outcome,
            how=how,
            started_t=start_t,
            ended_t=end_t,
            status=status,
            response_id=f"response-{name}" if tokens or finished else None,
            tokens=tokens if streamed else int(finished),
            usage_tokens=tokens if finished else None,
            finish_reason="stop" if finished else None,
            last_token_t=last_token_t,
            last_progress_t=last_token_t,
            cause=cause,
            evidence=evidence,
            unclean_end=unclean_end,
        ),
    ]
    if not reached:
        return
    entries = world.file(node, "exo", main, -5.0)
    refused = status is not None and status >= 400
    response = f"response-{name}"
    if not refused:
        entries.append(
            ledger.RequestOpened(
                t=ZERO + start_t + 0.002, node=node, response=response, model=MODEL, streamed=streamed, request=name
            )
        )
    if ledger_end is not None:
        entries.append(
            ledger.RequestClosed(
                t=ZERO + (end_t + (0.003 if ledger_end == "left" else -0.003) if closed_t is None else closed_t),
                node=node,
                response=response,
                end=ledger_end,
                status=status or 200,
                finish_reason="stop" if finished else None,
                tokens=tokens,
                last_token_t=None if last_token_t is None else ZERO + last_token_t - 0.001,
                message="the master changed" if ledger_end == "error" else "",
                request=name,
            )
        )
