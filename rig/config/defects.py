"""Names of the defects that the embedded cluster can be given (`embedded: defects:`). What each does is said in
`rig.lab.exo.defects`; which check finds it in `docs/defects.md`."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

BehaviourName: TypeAlias = Literal["sound", "upstream", "exo-0.3.70"]

KeeperDefect: TypeAlias = Literal[
    # rules of the keeper, removed or wrong
    "two-instances",
    "no-rate-limit",
    "hurried-steps",
    "no-backoff",
    "flat-backoff",
    "wrong-backoff",
    "endless-backoff",
    "backoff-not-reset",
    "backoff-after-ready",
    "no-replacement",
    "no-grace",
    "short-grace",
    "no-reason",
    "stale-reason",
    "reason-rewritten",
    "no-retry-on-change",
    "no-timed-retry",
    "late-timed-retry",
    "delete-leaves-instance",
    "delete-kills-hand-placed",
    "deleted-comes-back",
    "duplicates-accepted",
    "unknown-delete-200",
    "in-flight-not-waited",
    "hand-placed-not-adopted",
    "stale-retry",
    "long-grace",
    "burst-after-grace",
    "in-flight-for-ever",
    "crash-ends-keeper",
    "remembers-models",
    "moves-instances",
    "deletes-by-model",
    "wrong-status",
]
Symptom: TypeAlias = Literal[
    # symptoms seen on real clusters
    "forgets-deployments",
    "two-masters",
    "exo-dies-elsewhere",
    "zombie-instance",
    "dead-runner-listed",
    "ghost-node",
    "split-view",
    "silent-hang",
    "hang-after-master-change",
    "cut-stream",
    "cut-at-instance-end",
    "empty-200",
    "memory-kept",
    "slow-after-restart",
    "slow-recovery",
    "wedge",
    "stale-replay",
    "endless-election",
    "idle-spin",
    "runner-spin",
    "runner-kept",
    "orphaned-runners",
    "never-appears",
    # answers that end well and say something else
    "swapped-streams",
    "token-lost",
    "token-twice",
    "wrong-shard",
    "odd-replica",
    "stale-answer",
]

DefectName: TypeAlias = KeeperDefect | Symptom

KEEPER_DEFECTS: Final[tuple[KeeperDefect, ...]] = get_args(KeeperDefect)
DEFECTS: Final[tuple[DefectName, ...]] = (*KEEPER_DEFECTS, *get_args(Symptom))
