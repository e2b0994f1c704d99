"""How a node of the embedded cluster behaves: its timers, and a switch for each way in which it may misbehave.

`sound()` ends every request with a result or an error and keeps every promise of the keeper. `upstream()` is that with
exo's own keeper. `exo_0_3_70()` has the flaws that were measured on exo 0.3.70. A defect is one field changed with
`dataclasses.replace`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from rig.config.defects import BehaviourName

_UNPACED = frozenset({"flush_s", "token_s", "replay_events_per_s"})


@dataclass(frozen=True)
class Timers:
    """Every duration, in seconds. The defaults are the measured ones of exo 0.3.70 (pace 1)."""

    # links
    heartbeat_s: float = 1.0
    silence_low_s: float = 10.4  # a silent peer is given up after a time drawn from low..high
    silence_high_s: float = 10.6
    redial_s: float = 0.5  # how often the host of a node tries to reach a peer without a link
    # election
    election_s: float = 3.2
    disagreement_s: float = 8.0  # a living peer follows another master for so long: elect again
    follow_retry_s: float = 1.0
    # the node's reports
    info_s: float = 1.0  # memory
    network_info_s: float = 2.0  # interfaces: with memory, three idle nodes make 4-5 events a second
    first_info_s: float = 1.8
    probe_s: float = 10.0  # topology probes
    # the master
    node_timeout_s: float = 30.0
    timeout_pass_s: float = 10.0
    replay_events_per_s: float = 500.0
    # the keeper
    keeper_step_s: float = 1.0
    keeper_grace_s: float = 15.0
    placement_flight_s: float = 0.2  # from the keeper's decision to the event
    in_flight_wait_s: float = 30.0
    retry_s: float = 30.0  # what cannot be placed, while nothing changes
    backoff_base_s: float = 10.0
    backoff_max_s: float = 60.0
    # the worker and its runners
    plan_s: float = 0.1  # one action each
    runner_poll_s: float = 5.0  # a dead runner is noticed by polling
    spawn_s: float = 1.4
    connect_s: float = 0.3
    load_s: float = 0.3
    warmup_s: float = 0.3
    prefill_s: float = 0.05
    token_s: float = 0.006  # not paced: a token costs what it costs
    ring_stall_s: float = 2.5  # a ring stands still when a rank's node has been silent for so long
    ring_break_s: float = 18.0  # a ring that stood still for so long under load never runs again (where rings wedge)
    runner_stuck_s: float = 30.0  # a running task without output: the runner is replaced (sound)
    # the API
    keepalive_s: float = 10.0
    resend_s: float = 4.0  # a command that the master has not accepted is sent again
    progress_s: float = 60.0  # a request without progress ends with an error (sound)
    first_deploy_s: float = 12.0  # a process's first POST /deployments loads all model cards (where looking is dear)
    state_low_s: float = 0.09  # any path below /state: the whole of it is dumped first
    state_high_s: float = 0.18
    state_whole_s: float = 0.5
    event_read_s: float = 0.0005  # of each event in the log, by /events: 8 MB took 16 s
    # all
    pause_s: float = 3.0  # a gap between two ticks that says: this process was stopped
    flush_s: float = 0.01  # events are sent in batches; not paced

    def paced(self, factor: float) -> Timers:
        """Every duration divided by `factor` (≥ 1), rates multiplied; what is real work (tokens, batching) stays."""
        scaled = {f.name: getattr(self, f.name) / factor for f in fields(self) if f.name not in _UNPACED}
        return replace(self, **scaled, replay_events_per_s=self.replay_events_per_s * factor)


@dataclass(frozen=True)
class Behaviour:
    """Switches. The defaults are sound; each other value is a flaw of exo 0.3.70 or a defect to be found."""

    name: str = "sound"
    # requests
    on_instance_gone: Literal["error", "clean_end"] = "error"
    on_master_change: Literal["error", "forget"] = "error"  # forget: keep-alives for ever
    plain_error: Literal["abort", "empty_body"] = "abort"  # how a request that is not streamed ends in an error
    resends: int = 3  # of a command that the master never accepted; then an error. 0: never, and no error either
    progress_watch: bool = True  # requests without progress end; runners without output are replaced
    dear_api: bool = False  # what /state, /events and the first deployment cost; else they cost nothing
    reject_unservable: bool = True  # the master answers a command it cannot serve
    requests_hang: bool = False  # a runner takes a task and never answers
    hang_chance: float = 0.05
    streams_cut: bool = False  # streams end cleanly in the middle
    cut_chance: float = 0.05
    # master and state
    carry_instances: bool = True  # a new master starts from the state it knows, instances included
    deployments_outlive_master: bool = True
    snapshot: bool = True  # a joining node gets the state at once; False: replay, with old state shown meanwhile
    senior_master_wins: bool = False  # a resumed old master wins and brings its old state; False: the larger group wins
    deaf_election_chance: float = 0.0  # a node hears no one in an election that began with a silence
    endless_election: bool = False  # from the first loss of a peer on
    masters_stay: bool = False  # a master that others once elected never yields to another
    instances_in_same_pass: bool = True  # a timed-out node's instances go with it; False: one pass later
    ghost_nodes: bool = False  # nodes are never timed out
    zombie_instances: bool = False  # instances of timed-out nodes stay
    restarted_sees_itself: bool = False  # a node that was started again takes no other into its view
    keep_dead_entries: bool = False  # identities, backends and runners of what is gone stay listed
    notice_own_pause: bool = True  # a process that was stopped does not blame its peers for the silence
    lose_hand_placements: bool = False  # POST answers 200 and the instance never appears
    # worker and runners
    instance_dies_at_kill: int | None = None  # the nth runner failure of an instance deletes it
    failed_start_deletes: bool = True  # a runner that dies before its instance was ever ready takes it along
    ring_wedges: bool = False  # a ring that breaks under load hangs the survivor, and its node's worker stops planning
    ring_stays_idle_chance: float = 0.0  # of a ring that is built after a peer was lost: it never connects
    runner_crash_chance: float = 0.0  # of an instance: each request crashes its runner
    hung_runner_kill_ends_exo: bool = False  # SIGKILL of a hung runner ends exo on every other node
    runner_kill_ends_exo: bool = False  # SIGKILL of any runner does so
    runner_death_unnoticed: bool = False
    runners_end_with_main: bool = True  # read by the runner process: False leaves orphans
    slow_after_restart: float = 1.0  # tokens take so many times as long on a node that was started again
    spin_when_idle: bool = False  # read by the main process
    runners_spin: bool = False  # read by the runner process: from its first request on
    runners_outlive_instance: bool = False
    wrong_shard_on_reload: bool = False  # a model that was loaded before on a node answers otherwise
    odd_weights_on: str = ""  # the node whose weights are others
    sends_after_resume: int = 1  # how often the first token after a pause is sent
    swap_chance: float = 0.0  # of two streams of a runner that was loaded anew
    stale_after_cancel: bool = False  # the next request gets the answer of the one that was cancelled
    leak_memory: bool = False  # memory of a killed runner never comes back in the node's reports
    leak_bytes: int = 0  # … and so much with it
    # keeper
    keeper: Literal["promised", "upstream"] = "promised"  # exo's own: its events come back late
    keeper_grace: bool = True
    keeper_rate_limit: bool = True
    keeper_backoff: bool = True
    keeper_backoff_grows: bool = True
    keeper_backoff_reset: bool = True
    keeper_backoff_when_ready: bool = False  # backs off also after a loss of a ready instance
    keeper_replaces: bool = True  # False: a lost ready instance is not placed again
    keeper_adopts: bool = True  # False: places beside an instance placed by hand
    keeper_waits_in_flight: bool = True  # False: places again while a placement is on its way
    keeper_says_why: bool = True
    keeper_clears_reason: bool = True  # False: the reason stays when it has been placed after all
    keeper_reason_once: bool = True  # False: the reason is written at each attempt
    keeper_retries_on_change: bool = True
    keeper_retries_by_time: bool = True
    delete_takes_instance: bool = True
    delete_takes_others: bool = False  # deletes instances placed by hand too
    deleted_comes_back: bool = False  # a deployment deleted during its placement gets its instance all the same
    duplicates_refused: bool = True
    unknown_is_404: bool = True
    double_placement: bool = False  # every placement is made twice
    keeper_forgets_retry: bool = True  # False: the time of the next attempt after a refusal outlives the placement
    keeper_forgets_models: bool = True  # False: a new deployment of a model goes on where the last one ended
    keeper_contains_crashes: bool = True  # False: a placement that crashes ends the keeper
    keeper_burst_after_grace: bool = False  # the first step after the grace places everything
    keeper_moves: bool = False  # an instance that serves is deleted after a while, to be placed elsewhere
    placements_lost: int = 0  # the first so many placements of a deployment never become events
    delete_by_model: bool = False  # deleting a deployment that is gone deletes what its model has now
    status_by_name: bool = False  # a deployment is said to be serving as soon as it names an instance

    @property
    def keeps(self) -> dict[str, bool]:
        """What stays in the state of a cluster after it is gone: arguments of `ClusterState`."""
        return {"keep_dead_entries": self.keep_dead_entries, "names_gone": self.keeper == "upstream"}


def sound() -> Behaviour:
    return Behaviour()


def upstream() -> Behaviour:
    """Sound, with the keeper of exo after 0.3.70; a deployment goes on naming an instance that is gone."""
    return Behaviour(name="upstream", keeper="upstream", keeper_forgets_retry=False)


def exo_0_3_70(*, deployments_outlive_master: bool = False, seed: int | None = None) -> Behaviour:
    """As measured. With `deployments_outlive_master` the keeper is correct while all else stays flawed.

    What was seen now and then happens with chances that follow from `seed`; without one it does not happen.
    """
    rng = None if seed is None else random.Random(f"{seed} habits")
    return Behaviour(
        name="exo-0.3.70",
        on_instance_gone="clean_end",
        on_master_change="forget",
        plain_error="empty_body",
        resends=0,
        progress_watch=False,
        dear_api=True,
        reject_unservable=False,
        carry_instances=False,
        deployments_outlive_master=deployments_outlive_master,
        snapshot=False,
        senior_master_wins=True,
        deaf_election_chance=0.2,
        instances_in_same_pass=False,
        keep_dead_entries=True,
        notice_own_pause=False,
        instance_dies_at_kill=5,
        failed_start_deletes=False,
        ring_wedges=True,
        ring_stays_idle_chance=0.0 if rng is None else rng.uniform(0.1, 0.4),
        runner_crash_chance=0.0 if rng is None else rng.uniform(0.02, 0.1),
        hung_runner_kill_ends_exo=True,
        runners_end_with_main=False,
    )


def named(name: BehaviourName, seed: int | None) -> Behaviour:
    """`seed` draws the habits of `exo-0.3.70`; None: it has none."""
    match name:
        case "sound":
            return sound()
        case "upstream":
            return upstream()
        case "exo-0.3.70":
            return exo_0_3_70(seed=seed)


def timers_for(
    behaviour: Behaviour,
    *,
    pace: float = 1.0,
    load_s: float | None = None,
    changes: Mapping[str, float] | None = None,
) -> Timers:
    """Timers at a pace; `load_s` (at pace 1) replaces the measured load time, `changes` any others of them.

    A flawed node is slow to see a split.
    """
    timers = Timers() if load_s is None else replace(Timers(), load_s=load_s)
    if behaviour.senior_master_wins:
        timers = replace(timers, disagreement_s=45.0)
    if behaviour.endless_election:
        timers = replace(timers, disagreement_s=math.inf)
    return replace(timers, **(changes or {})).paced(pace)
