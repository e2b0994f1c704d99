"""The defects that a cluster can be given: each is a rule of the keeper removed or made wrong, or a symptom seen on
real clusters. A rig whose checks miss one of them would miss it in exo.

A defect changes switches of `Behaviour` and durations of `Timers` (at pace 1). Its parameters are drawn from a seed, so
that no check can be fitted to one value. `docs/defects.md` says which check finds which.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from rig.config.defects import DefectName


@dataclass(frozen=True)
class Changes:
    """Fields of `Behaviour`, and of `Timers` in seconds at pace 1."""

    behaviour: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timers: Mapping[str, float] = field(default_factory=dict[str, float])


Draw: TypeAlias = Callable[[random.Random], Changes]


@dataclass(frozen=True)
class Defect:
    """`what` is in plain words, for the table; `source` is where such a thing was seen, for symptoms."""

    kind: Literal["keeper", "symptom"]
    what: str
    draw: Draw
    source: str = ""


def _switch(**fields: Any) -> Draw:
    return lambda rng: Changes(fields)


_MIB: Final = 1024**2

DEFECTS: Final[Mapping[DefectName, Defect]] = {
    "two-instances": Defect("keeper", "every placement is made twice", _switch(double_placement=True)),
    "no-rate-limit": Defect("keeper", "places everything it can in one step", _switch(keeper_rate_limit=False)),
    "hurried-steps": Defect(
        "keeper",
        "places several times a second",
        lambda rng: Changes(timers={"keeper_step_s": rng.uniform(0.1, 0.4), "placement_flight_s": 0.05}),
    ),
    "no-backoff": Defect(
        "keeper", "an instance lost before it was ready is placed again at once", _switch(keeper_backoff=False)
    ),
    "flat-backoff": Defect(
        "keeper", "waits as long after the fourth loss as after the first", _switch(keeper_backoff_grows=False)
    ),
    "wrong-backoff": Defect(
        "keeper",
        "the backoff begins too short",
        lambda rng: Changes(timers={"backoff_base_s": rng.uniform(2.0, 6.5)}),
    ),
    "endless-backoff": Defect(
        "keeper", "the backoff grows beyond 60 s", lambda rng: Changes(timers={"backoff_max_s": math.inf})
    ),
    "backoff-not-reset": Defect(
        "keeper", "an instance that was ready does not reset the backoff", _switch(keeper_backoff_reset=False)
    ),
    "backoff-after-ready": Defect(
        "keeper",
        "waits before it replaces an instance that was ready",
        lambda rng: Changes({"keeper_backoff_when_ready": True}, {"backoff_base_s": 10.0}),
    ),
    "no-replacement": Defect("keeper", "an instance that was ready is never replaced", _switch(keeper_replaces=False)),
    "no-grace": Defect("keeper", "a new master places at once", _switch(keeper_grace=False)),
    "short-grace": Defect(
        "keeper",
        "a new master waits for less than 15 s",
        lambda rng: Changes(timers={"keeper_grace_s": rng.uniform(4.0, 10.0)}),
    ),
    "no-reason": Defect("keeper", "does not say why something cannot be placed", _switch(keeper_says_why=False)),
    "stale-reason": Defect(
        "keeper", "still says why it could not be placed after it was", _switch(keeper_clears_reason=False)
    ),
    "reason-rewritten": Defect("keeper", "writes the reason again at every attempt", _switch(keeper_reason_once=False)),
    "no-retry-on-change": Defect(
        "keeper", "does not try again when nodes or links change", _switch(keeper_retries_on_change=False)
    ),
    "no-timed-retry": Defect(
        "keeper", "never tries again while nodes and links stay", _switch(keeper_retries_by_time=False)
    ),
    "late-timed-retry": Defect(
        "keeper", "tries again after minutes only", lambda rng: Changes(timers={"retry_s": rng.uniform(90.0, 240.0)})
    ),
    "delete-leaves-instance": Defect(
        "keeper", "deleting a deployment leaves its instance", _switch(delete_takes_instance=False)
    ),
    "delete-kills-hand-placed": Defect(
        "keeper", "deleting a deployment takes what was placed by hand", _switch(delete_takes_others=True)
    ),
    "deleted-comes-back": Defect(
        "keeper",
        "a deployment deleted during its placement gets its instance all the same",
        lambda rng: Changes({"deleted_comes_back": True}, {"placement_flight_s": rng.uniform(1.5, 4.0)}),
    ),
    "duplicates-accepted": Defect("keeper", "takes a second deployment of a model", _switch(duplicates_refused=False)),
    "unknown-delete-200": Defect(
        "keeper", "answers 200 to the deletion of an unknown deployment", _switch(unknown_is_404=False)
    ),
    "in-flight-not-waited": Defect(
        "keeper",
        "places again while a placement is on its way",
        lambda rng: Changes({"keeper_waits_in_flight": False}, {"placement_flight_s": rng.uniform(1.5, 5.0)}),
    ),
    "hand-placed-not-adopted": Defect(
        "keeper", "places beside an instance that was placed by hand", _switch(keeper_adopts=False)
    ),
    "stale-retry": Defect(
        "keeper",
        "the time of the next attempt after a refusal outlives the placement after it",
        _switch(keeper_forgets_retry=False),
        "exo's keeper after 0.3.70",
    ),
    "long-grace": Defect(
        "keeper",
        "a new master waits for much longer than 15 s",
        lambda rng: Changes(timers={"keeper_grace_s": rng.uniform(60.0, 90.0)}),
    ),
    "burst-after-grace": Defect(
        "keeper", "a new master places everything in its first step", _switch(keeper_burst_after_grace=True)
    ),
    "in-flight-for-ever": Defect(
        "keeper",
        "a placement that never arrives is waited for, for ever",
        lambda rng: Changes({"placements_lost": 1}, {"in_flight_wait_s": math.inf}),
    ),
    "crash-ends-keeper": Defect(
        "keeper", "a placement that crashes ends the keeper", _switch(keeper_contains_crashes=False)
    ),
    "remembers-models": Defect(
        "keeper",
        "a new deployment of a model waits for the backoff of the one before",
        _switch(keeper_forgets_models=False),
    ),
    "moves-instances": Defect(
        "keeper", "deletes an instance that serves, to place it somewhere else", _switch(keeper_moves=True)
    ),
    "deletes-by-model": Defect(
        "keeper",
        "deleting a deployment a second time takes the instance of the one after it",
        _switch(delete_by_model=True, unknown_is_404=False),
    ),
    "wrong-status": Defect(
        "keeper", "says that a deployment serves as soon as it is placed", _switch(status_by_name=True)
    ),
    "forgets-deployments": Defect(
        "symptom",
        "a new master starts without the deployments",
        _switch(deployments_outlive_master=False, carry_instances=False),
        "the keeper on exo 0.3.70",
    ),
    "two-masters": Defect(
        "symptom",
        "masters that met again after a split both stay",
        lambda rng: Changes({"masters_stay": True}, {"disagreement_s": math.inf}),
        "exo 0.3.70, after a freeze",
    ),
    "exo-dies-elsewhere": Defect(
        "symptom",
        "a killed runner ends exo on the other nodes",
        _switch(runner_kill_ends_exo=True),
        "exo 0.3.70, a diagnostic that does not survive JSON",
    ),
    "zombie-instance": Defect(
        "symptom",
        "the instance of a node that is gone stays listed",
        _switch(zombie_instances=True),
        "exo-explore/exo 2120",
    ),
    "dead-runner-listed": Defect(
        "symptom",
        "a dead runner is never noticed: its instance stays listed and every request times out",
        _switch(runner_death_unnoticed=True, progress_watch=False),
        "exo-explore/exo 2120, 1586",
    ),
    "ghost-node": Defect(
        "symptom", "a node that is gone is never removed", _switch(ghost_nodes=True), "exo-explore/exo 2194"
    ),
    "split-view": Defect(
        "symptom",
        "a restarted node sees only itself, the others see everybody",
        _switch(restarted_sees_itself=True),
        "exo-explore/exo 1847",
    ),
    "silent-hang": Defect(
        "symptom",
        "a runner takes a request and never answers",
        lambda rng: Changes({"requests_hang": True, "hang_chance": rng.uniform(0.02, 0.08), "progress_watch": False}),
        "exo-explore/exo 1823",
    ),
    "hang-after-master-change": Defect(
        "symptom",
        "requests get keep-alives for ever when their master changes",
        _switch(on_master_change="forget", progress_watch=False, resends=0),
        "exo 0.3.70",
    ),
    "cut-stream": Defect(
        "symptom",
        "streams end cleanly in the middle",
        lambda rng: Changes({"streams_cut": True, "cut_chance": rng.uniform(0.02, 0.08)}),
        "exo 0.3.70",
    ),
    "cut-at-instance-end": Defect(
        "symptom",
        "streams end cleanly when their instance goes",
        _switch(on_instance_gone="clean_end"),
        "exo 0.3.70",
    ),
    "empty-200": Defect(
        "symptom",
        "what is not streamed ends in an empty 200 instead of an error",
        _switch(plain_error="empty_body"),
        "exo 0.3.70",
    ),
    "memory-kept": Defect(
        "symptom",
        "the memory of a killed runner never comes back",
        lambda rng: Changes({"leak_memory": True, "leak_bytes": rng.randint(300, 700) * _MIB}),
        "exo-explore/exo 1370, PR 2205",
    ),
    "slow-after-restart": Defect(
        "symptom",
        "a node that was restarted makes its tokens several times slower",
        lambda rng: Changes({"slow_after_restart": rng.uniform(4.0, 10.0)}),
        "exo-explore/exo 1723",
    ),
    "slow-recovery": Defect(
        "symptom",
        "a dead runner is noticed after minutes",
        lambda rng: Changes(timers={"runner_poll_s": rng.uniform(240.0, 360.0)}),
        "",
    ),
    "wedge": Defect(
        "symptom",
        "a two-node ring hangs for ever when a rank dies under load",
        _switch(ring_wedges=True),
        "exo 0.3.70, 3 of 3",
    ),
    "stale-replay": Defect(
        "symptom",
        "a node that rejoins replays the log slowly, showing what was true long ago",
        lambda rng: Changes(
            {"snapshot": False, "progress_watch": False, "resends": 0},
            {"replay_events_per_s": rng.uniform(60.0, 120.0)},
        ),
        "exo 0.3.70, 500 events/s",
    ),
    "endless-election": Defect(
        "symptom",
        "once a peer was lost, every election is followed by the next",
        lambda rng: Changes({"endless_election": True}, {"disagreement_s": math.inf}),
        "exo-explore/exo 2094",
    ),
    "idle-spin": Defect(
        "symptom", "the main process uses a whole CPU while idle", _switch(spin_when_idle=True), "exo-explore/exo 1823"
    ),
    "runner-spin": Defect("symptom", "a runner uses a whole CPU from its first request on", _switch(runners_spin=True)),
    "runner-kept": Defect(
        "symptom",
        "the runner of an instance that is gone stays, with its memory, while its main process lives",
        _switch(runners_outlive_instance=True),
    ),
    "orphaned-runners": Defect(
        "symptom",
        "a killed runner ends exo on the other nodes, whose runners live on with their memory",
        _switch(runners_end_with_main=False, runner_kill_ends_exo=True),
        "exo-explore/exo PR 2205",
    ),
    "never-appears": Defect(
        "symptom",
        "a placement is answered with 200 and the instance never appears",
        _switch(lose_hand_placements=True),
        "exo-explore/exo 2047",
    ),
    "swapped-streams": Defect(
        "symptom",
        "a runner that was loaded anew gives two streams each other's answer",
        lambda rng: Changes({"swap_chance": rng.uniform(0.1, 0.4)}),
    ),
    "token-lost": Defect(
        "symptom", "the first token after a pause of the runner is never sent", _switch(sends_after_resume=0)
    ),
    "token-twice": Defect(
        "symptom", "the first token after a pause of the runner is sent twice", _switch(sends_after_resume=2)
    ),
    "wrong-shard": Defect(
        "symptom", "a model that is loaded again on a node has the wrong shard", _switch(wrong_shard_on_reload=True)
    ),
    "odd-replica": Defect(
        "symptom",
        "one node has other weights of the models than the rest",
        lambda rng: Changes({"odd_weights_on": rng.choice(["node-1", "node-2", "node-3"])}),
    ),
    "stale-answer": Defect(
        "symptom",
        "the request after one that was cancelled gets the answer of that one",
        _switch(stale_after_cancel=True),
    ),
}


def changes_of(names: Iterable[str], seed: int) -> Changes:
    """What these defects change together, with parameters that follow from the seed. Raises KeyError for no defect."""
    behaviour: dict[str, Any] = {}
    timers: dict[str, float] = {}
    table = {str(name): defect for name, defect in DEFECTS.items()}
    for name in names:
        drawn = table[name].draw(random.Random(f"{seed} {name}"))
        behaviour |= drawn.behaviour
        timers |= drawn.timers
    return Changes(behaviour, timers)
