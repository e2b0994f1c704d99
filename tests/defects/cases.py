"""How each defect is reached, and which checks are meant to find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rig.config.defects import DefectName
from rig.targets.exo.checks.promises import PROMISES

Shape: TypeAlias = Literal["general", "scarce"]
"""`general`: two models, of which one on two nodes. `scarce`: one needs all nodes, which are away for long."""

KEEPER: Final = frozenset({
    "one-instance-per-model", "deployments-outlive-master", "status-true", *(name for name, _, _ in PROMISES),
    "deleted-once", "duplicates-refused", "unknown-is-404", "placed-by-hand-appears",
})  # fmt: skip
"""Checks that speak of the keeper alone."""

ALL: Final[tuple[str, ...]] = ("node-crash", "master-crash", "freeze", "runner-kill", "partition")


@dataclass(frozen=True)
class Case:
    """A soak with `faults` faults of these kinds, or scripted scenarios (then by their names).

    `finders`: one of them must fail; without the event log one of those that failed must not pass.
    """

    finders: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    faults: int = 4
    shape: Shape = "general"
    scenarios: tuple[str, ...] = ()
    bounds: bool = False  # the plan bounds the time to serve
    canaries: float = 0.1  # the share of the load


CRASHES: Final[tuple[str, ...]] = ("node-crash", "master-crash")

CASES: Final[Mapping[DefectName, Case]] = {
    "two-instances": Case(("one-placement", "one-in-flight"), CRASHES, 2),
    "no-rate-limit": Case(("placement-rate",), scenarios=("two-at-once", "two-at-once", "two-at-once")),
    "hurried-steps": Case(("placement-rate",), scenarios=("two-at-once", "two-at-once", "two-at-once")),
    "no-backoff": Case(("backoff",), scenarios=("backoff",)),
    "flat-backoff": Case(("backoff",), scenarios=("backoff",)),
    "wrong-backoff": Case(("backoff",), scenarios=("backoff",)),
    "endless-backoff": Case(("backoff",), scenarios=("backoff",)),
    "backoff-not-reset": Case(("backoff-reset",), scenarios=("backoff-reset",)),
    "backoff-after-ready": Case(("replaced-at-once",), scenarios=("instance-deleted",)),
    "no-replacement": Case(("replaced-at-once", "recovered"), ("node-crash",), 4),
    "no-grace": Case(("new-master-grace",), scenarios=("new-master",)),
    "short-grace": Case(("new-master-grace",), scenarios=("new-master",)),
    "no-reason": Case(("says-why",), scenarios=("cannot-place",)),
    "stale-reason": Case(("reason-once",), scenarios=("cannot-place",)),
    "reason-rewritten": Case(("reason-once",), scenarios=("cannot-place",)),
    "no-retry-on-change": Case(("retried-on-change",), scenarios=("cannot-place",) * 4),
    "no-timed-retry": Case(("retried-by-time",), scenarios=("memory-freed",)),
    "late-timed-retry": Case(("retried-by-time",), scenarios=("memory-freed",)),
    "delete-leaves-instance": Case(("delete-takes-own",), scenarios=("delete-deployment",)),
    "delete-kills-hand-placed": Case(("delete-leaves-others",), scenarios=("delete-leaves-others",)),
    "deleted-comes-back": Case(("nothing-comes-back",), scenarios=("delete-on-its-way",)),
    "duplicates-accepted": Case(("duplicates-refused",), scenarios=("duplicates-and-unknown",)),
    "unknown-delete-200": Case(("unknown-is-404",), scenarios=("duplicates-and-unknown",)),
    "in-flight-not-waited": Case(("one-in-flight", "one-placement"), CRASHES, 2),
    "hand-placed-not-adopted": Case(("one-placement",), scenarios=("placed-by-hand",)),
    "stale-retry": Case(("replaced-at-once",), scenarios=("refused-then-lost",)),
    "long-grace": Case(("grace-ends",), scenarios=("after-the-grace",)),
    "burst-after-grace": Case(("rate-after-grace",), scenarios=("after-the-grace",) * 3),
    "in-flight-for-ever": Case(("made-again",), scenarios=("status-as-shown",)),
    "crash-ends-keeper": Case(("others-kept",), scenarios=("crashing-placement",)),
    "remembers-models": Case(("starts-afresh",), scenarios=("deployed-again",)),
    "moves-instances": Case(("only-creates",), scenarios=("left-alone",)),
    "deletes-by-model": Case(("deleted-once",), scenarios=("deleted-twice",)),
    "wrong-status": Case(("status-true",), scenarios=("status-as-shown",)),
    "forgets-deployments": Case(("deployments-outlive-master",), ("master-crash",), 2),
    "two-masters": Case(("one-master", "views-agree"), ("partition", "freeze"), 6),
    "exo-dies-elsewhere": Case(("nobody-else-died",), ("runner-kill",), 2),
    "zombie-instance": Case(("no-zombie",), ("node-crash",), 4),
    "dead-runner-listed": Case(("no-zombie", "no-silent-hang", "recovered"), ("runner-kill",), 2),
    "ghost-node": Case(("no-ghost",), ("node-crash",), 3),
    "split-view": Case(("views-agree",), ("node-crash",), 3),
    "silent-hang": Case(("no-silent-hang",), ("freeze",), 2),
    "hang-after-master-change": Case(("no-silent-hang",), ("master-crash",), 3),
    "cut-stream": Case(("no-cut-stream",), ("freeze",), 2),
    "cut-at-instance-end": Case(("no-cut-stream", "no-empty-answer"), ("node-crash",), 6),
    "empty-200": Case(("no-empty-answer",), ("runner-kill",), 6),
    "memory-kept": Case(("memory-given-back",), ("runner-kill",), 6),
    "slow-after-restart": Case(("speed-is-back",), ("node-crash",), 8),
    "slow-recovery": Case(("time-to-serve", "recovered"), ("runner-kill",), 8, bounds=True),
    "wedge": Case(("recovered",), ("runner-kill",), 8),
    "stale-replay": Case(("catches-up",), ("node-crash",), 6),
    "endless-election": Case(("no-endless-election",), ("freeze",), 2),
    "idle-spin": Case(("idle-is-idle",), ("freeze",), 1),
    "runner-spin": Case(("idle-is-idle",), ("freeze",), 1),
    "runner-kept": Case(("nothing-left-behind",), ("node-crash",), 4),
    "orphaned-runners": Case(("nothing-left-behind",), ("runner-kill",), 2),
    "never-appears": Case(("placed-by-hand-appears",), scenarios=("placed-by-hand",)),
    "swapped-streams": Case(("no-cross-talk", "answers-unchanged"), ("runner-kill", "node-crash"), 4, canaries=0.5),
    "token-lost": Case(("answers-unchanged",), ("freeze",), 8, canaries=0.5),
    "token-twice": Case(("answers-unchanged",), ("freeze",), 8, canaries=0.5),
    "wrong-shard": Case(("answers-unchanged",), ("runner-kill", "node-crash"), 3),
    "odd-replica": Case(("answers-unchanged",), ("node-crash",), 8),
    "stale-answer": Case(("answers-unchanged", "no-cross-talk"), ("master-crash", "freeze"), 6, canaries=0.5),
}
