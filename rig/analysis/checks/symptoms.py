"""Checks for the symptoms of sick clusters: views, masters, processes, memory, speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.analysis.recovery.decision import Recovery
from rig.analysis.symptoms.lasting import Lasting
from rig.analysis.symptoms.speed import calm_windows, slower
from rig.analysis.symptoms.stale import growing, too_long
from rig.written import duration


def _lasting(which: Callable[[Analysis], Lasting], wrong: str, right: str) -> Callable[[Analysis], Answer]:
    def check(analysis: Analysis) -> Answer:
        lasting = which(analysis)
        if lasting.found:
            lines = [f"{one.text}, from {one.from_t:.1f} to {one.to_t:.1f} s at least" for one in lasting.found]
            return Answer("fail", f"{wrong} ({len(lines)} seen)", evidence(lines))
        if not lasting.judged:
            return Answer("not-exercised", "never calm for long enough to tell")
        return Answer("pass", f"{right}, {duration(lasting.calm.grace_s)} after each fault and later")

    return check


def no_endless_election(analysis: Analysis) -> Answer:
    watch = analysis.watch.elections
    endless = watch.endless()
    if endless:
        return Answer("fail", "elections went on in calm weather", evidence(endless))
    if not watch.judged:
        return Answer("not-exercised", "no master was seen, or calm weather was too short to tell")
    return Answer("pass", "no run of elections in calm weather")


def nobody_else_died(analysis: Analysis) -> Answer:
    watch = analysis.watch.processes
    died = watch.died(analysis.faults)
    if died:
        return Answer("fail", f"the target died {len(died)} times where no fault had struck", evidence(died))
    if not watch.pairs():
        return Answer("not-exercised", "processes were not inspected twice")
    return Answer("pass", f"each of {watch.pairs()} inspections found the expected main process")


def nothing_left_behind(analysis: Analysis) -> Answer:
    watch = analysis.watch.processes
    left = watch.left_behind()
    if left:
        return Answer("fail", "processes were left behind by a main process that is gone", evidence(left))
    if watch.kept:
        return Answer("fail", f"{analysis.watch.judged.worker}s outlived their instances", evidence(watch.kept))
    if not watch.pairs():
        return Answer("not-exercised", "processes were not inspected")
    return Answer("pass", "no process was left behind")


def idle_is_idle(analysis: Analysis) -> Answer:
    shares = analysis.watch.processes.idle_shares()
    busy = [
        f"{process}: {share * 100:.0f} % of a core with nothing to do"
        for process, share in analysis.watch.processes.spinning().items()
    ]
    if busy:
        return Answer("fail", "the target spins while idle", evidence(busy))
    if not shares:
        return Answer("not-exercised", "the target was not inspected while it was idle")
    return Answer("pass", f"at most {max(shares.values()) * 100:.0f} % of a core while idle")


def memory_given_back(analysis: Analysis) -> Answer:
    watch = analysis.watch.memory
    kept = watch.kept_back()
    if kept:
        return Answer("fail", "memory was not released", evidence(kept))
    if not watch.compared():
        return Answer("not-exercised", "no node was seen twice with the same models")
    return Answer(
        "pass", f"as much memory free as before in {watch.compared()} comparisons of nodes with the same models"
    )


def speed_is_back(analysis: Analysis) -> Answer:
    watch = analysis.watch
    windows = calm_windows(analysis.baseline, analysis.faults, analysis.recoveries, watch.load_end_t)
    found, compared = slower(watch.speed, windows)
    if found:
        return Answer("fail", "models stayed slower than before the fault", evidence([one.text for one in found]))
    if not compared:
        return Answer("not-exercised", "no calm weather after a fault had enough requests to compare")
    return Answer("pass", f"back to the earlier level in {compared} periods of calm weather")


def no_zombie(analysis: Analysis) -> Answer:
    """Listed as ready by the master while nothing that was sent to the model was served."""
    stranded = analysis.watch.views.stranded.found
    lines = [f"{one.text}, from {one.from_t:.1f} to {one.to_t:.1f} s at least" for one in stranded]
    lines += [_dead(recovery) for recovery in analysis.recoveries if _is_dead(recovery)]
    if lines:
        return Answer("fail", "an instance stayed listed but served nothing", evidence(lines))
    if not analysis.recoveries and not analysis.watch.views.stranded.judged:
        return Answer("not-exercised", "no fault took effect")
    return Answer("pass", "every instance that stayed listed served")


def _is_dead(recovery: Recovery) -> bool:
    return recovery.recovery_class == "not recovered" and recovery.group == "survived"


def _dead(recovery: Recovery) -> str:
    return (
        f"fault {recovery.fault}, {recovery.model}: {recovery.instance_before or 'its instance'} stayed listed, and "
        f"{recovery.failures} requests failed up to {recovery.until_t:.1f} s"
    )


def catches_up(analysis: Analysis) -> Answer:
    rejoins, pace = analysis.rejoins, analysis.settings.pace
    if not any(rejoins.values()):
        return Answer("not-exercised", "no node was restarted")
    long = too_long(rejoins, pace, analysis.end_t)
    grown = growing(rejoins, pace, analysis.end_t)
    lines = [*long, *([grown] if grown else [])]
    if lines:
        return Answer("fail", "restarted nodes showed an old state for too long", evidence(lines))
    took = [window.to_t - window.from_t for windows in rejoins.values() for window in windows]
    return Answer("pass", f"caught up after at most {duration(max(took))}")


def _views(analysis: Analysis) -> Lasting:
    return analysis.watch.views.disagreeing


def _ghosts(analysis: Analysis) -> Lasting:
    return analysis.watch.views.ghosts


def _masters(analysis: Analysis) -> Lasting:
    return analysis.watch.views.masters


OF_PROCESSES: Final[Sequence[Check]] = [
    Check("nobody-else-died", "the target dies nowhere but where a fault struck", nobody_else_died),
    Check("nothing-left-behind", "no process outlives its main process, no worker its instance", nothing_left_behind),
    Check("idle-is-idle", "no process spins while there is nothing to do", idle_is_idle),
    Check("memory-given-back", "memory is released", memory_given_back),
    Check("speed-is-back", "speed returns to its earlier level after each fault", speed_is_back),
]
"""Of any target whose processes are known."""

CHECKS: Final[Sequence[Check]] = [
    Check(
        "views-agree",
        "nodes agree on nodes, instances and deployments",
        _lasting(_views, "views disagree", "views agree"),
    ),
    Check("one-master", "one node is master", _lasting(_masters, "too many masters, or none", "one master")),
    Check("no-ghost", "no node is listed that is gone", _lasting(_ghosts, "ghosts are listed", "no ghost")),
    Check("no-zombie", "no instance is listed that serves nothing", no_zombie),
    Check("no-endless-election", "elections end", no_endless_election),
    *OF_PROCESSES,
    Check("catches-up", "a restarted node catches up soon, and no slower every time", catches_up),
]
"""Of a target whose nodes list nodes and instances, elect a master, and follow its log."""
