"""Single runs as they are handed to worker processes, and what is made of each. `judge` is pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rig.config.defects import DefectName
from rig.errors import RigError
from rig.lab.exo.defects import Changes
from tests.defects.cases import ALL, CASES, KEEPER, Case
from tests.defects.play import Outcome, scenario, soak
from tests.defects.real import real

Kind: TypeAlias = Literal["defect", "sound", "flawed", "upstream"]

GENERAL: Final = Case(finders=(), kinds=ALL, faults=6)
KEPT: Final = Changes({"deployments_outlive_master": True})
"""exo 0.3.70 as it was measured, but for a keeper that keeps its promises."""
BROKEN: Final = frozenset({"replaced-at-once"})
"""What exo's own keeper breaks in a soak: a retry that outlives its placement …"""
MENDED: Final = Changes({"keeper_forgets_retry": True})
"""… and nothing where that one rule of it is put right."""


@dataclass(frozen=True)
class Job:
    """`name` is a defect or what the sound run plays: a soak, or a scenario."""

    kind: Kind
    name: str
    seed: int
    folder: Path | None = None  # to keep the runs in
    real: bool = False  # with real processes

    @property
    def case(self) -> Case:
        if self.kind == "defect":
            return CASES[self.defect]
        return GENERAL if self.name == "soak" else Case(finders=(), scenarios=(self.name,))

    @property
    def defect(self) -> DefectName:
        return next(name for name in CASES if name == self.name)


@dataclass(frozen=True)
class Row:
    """`ok`: the defect was found, or the sound run raised nothing. `found`: checks that failed and were meant to."""

    job: Job
    ok: bool
    found: tuple[str, ...] = ()
    bare: tuple[tuple[str, str], ...] = ()  # without the event log: those checks with their status
    others: tuple[str, ...] = ()  # further checks that failed
    why: str = ""
    took_s: float = 0.0
    virtual_s: float = 0.0
    requests: int = 0
    faults: int = 0


def run(job: Job) -> Row:
    """In a worker process. Never raises: a run that could not be made is a row that says so."""
    case = job.case
    defects = [job.name] if job.kind == "defect" else []
    behaviour = {"flawed": "exo-0.3.70", "upstream": "upstream"}.get(job.kind, "sound")
    changes = KEPT if job.kind == "flawed" else Changes()
    keep = None if job.folder is None else job.folder / f"{job.kind}-{job.name}-{job.seed}"
    play = scenario if case.scenarios else soak
    try:
        if job.real:
            outcome = real(case, job.seed, defects=defects, keep=keep)
        else:
            outcome = play(case, job.seed, behaviour=behaviour, defects=defects, keep=keep, changes=changes)
        row = judge(job, outcome)
        if job.kind == "upstream" and not row.ok and set(row.others) <= BROKEN:
            row = judge(job, play(case, job.seed, behaviour=behaviour, defects=[], keep=None, changes=MENDED))
    except RigError as error:
        return Row(job, ok=False, why=f"the run could not be made: {error}")
    return row


def judge(job: Job, outcome: Outcome) -> Row:
    failed = outcome.failed()
    if job.kind == "defect":
        return _judge_defect(job, outcome, failed)
    bad = [name for name in failed if job.kind != "flawed" or name in KEEPER]
    bare = [name for name in outcome.failed(log=False) if job.kind != "flawed" or name in KEEPER]
    unknown = [name for name, (status, _) in outcome.with_log.items() if status == "unknown"]
    if job.kind == "flawed":
        unknown = []
    why = "; ".join(f"{name}: {outcome.with_log[name][1]} {outcome.evidence.get(name, ())}" for name in bad + unknown)
    why += "; ".join(
        f"without the event log {name}: {outcome.without_log[name][1]}" for name in bare if name not in bad
    )
    others = tuple(dict.fromkeys(bad + unknown + bare))
    return _row(job, outcome, ok=not others, others=others, why=why)


def _judge_defect(job: Job, outcome: Outcome, failed: list[str]) -> Row:
    found = tuple(name for name in job.case.finders if name in failed)
    bare = tuple((name, outcome.without_log[name][0]) for name in found)
    blind = bool(found) and all(status not in ("fail", "unknown") for _, status in bare)
    why = ""
    if not found:
        why = "missed: " + "; ".join(f"{name} {': '.join(outcome.with_log[name])}" for name in job.case.finders)
    elif blind:
        why = "without the event log none of these says fail or unknown"
    others = tuple(name for name in failed if name not in found)
    return _row(job, outcome, ok=bool(found) and not blind, found=found, bare=bare, others=others, why=why)


def _row(
    job: Job,
    outcome: Outcome,
    *,
    ok: bool,
    found: tuple[str, ...] = (),
    bare: tuple[tuple[str, str], ...] = (),
    others: tuple[str, ...] = (),
    why: str,
) -> Row:
    ended = "" if outcome.ended == "finished" else f" (the run: {outcome.ended})"
    return Row(
        job=job,
        ok=ok,
        found=found,
        bare=bare,
        others=others,
        why=f"{why}{ended}".strip(),
        took_s=outcome.took_s,
        virtual_s=outcome.virtual_s,
        requests=outcome.requests,
        faults=outcome.faults,
    )
