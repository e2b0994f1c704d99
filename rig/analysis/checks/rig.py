"""Checks of the rig itself: whether what it says can be believed. They never fail a target; they make unknown."""

from __future__ import annotations

from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.written import duration

MOST_VOID: Final = 0.005
MOST_STALLED: Final = 0.01
LEAST_STALLED_S: Final = 1.0
"""In all, however short the run: less than that can have hidden little."""


def run_finished(analysis: Analysis) -> Answer:
    match analysis.ended:
        case None:
            return Answer("unknown", f"the run did not finish: its journal stops at {analysis.end_t:.1f} s")
        case ended if ended.reason == "finished":
            return Answer("pass", f"finished after {duration(analysis.end_t)}")
        case ended:
            detail = f": {ended.detail}" if ended.detail else ""
            how = "failed" if ended.reason == "failed" else f"was {ended.reason}"
            return Answer("unknown", f"the run {how} at {ended.t:.1f} s{detail}")


def activities_alive(analysis: Analysis) -> Answer:
    if analysis.died:
        lines = [f"{died.activity} at {died.t:.1f} s: {died.detail}" for died in analysis.died]
        return Answer("unknown", "an activity of the rig died", evidence(lines))
    return Answer("pass", "load, injection and observation ran to the end")


def controller_sound(analysis: Analysis) -> Answer:
    stalls, total = analysis.stalls, analysis.requests.total
    if not stalls.records:
        return Answer("unknown", "the controller's own health was not recorded")
    said = f"{total.void} void, worst lag {duration(stalls.lag_max_s)}, {stalls.count} stalls"
    lines = [f"{stall.from_t:.1f} to {stall.to_t:.1f} s: {duration(stall.length_s)}" for stall in stalls.kept]
    if total.started and total.void > MOST_VOID * total.started:
        return Answer("unknown", f"too many requests are void: {said}", evidence(lines))
    if stalls.total_s > max(MOST_STALLED * stalls.observed_s, LEAST_STALLED_S):
        return Answer("unknown", f"the controller stalled too long: {said}", evidence(lines))
    return Answer("pass", said)


def holes_of(analysis: Analysis) -> list[str]:
    """What shows that lines of the journal are missing, damaged or doubled: it is what is unsound then, no target."""
    notes = analysis.notes
    lines = [f"{broken.file}:{broken.line}: {broken.reason}" for broken in notes.broken]
    if notes.broken_count > len(lines):
        lines.append(f"and {notes.broken_count - len(lines)} more broken lines")
    if analysis.orphans:
        lines.append(f"{analysis.orphans} ends without a start")
    if analysis.repeated:
        lines.append(f"{analysis.repeated} starts of a request that was in flight already")
    return lines


def journal_sound(analysis: Analysis) -> Answer:
    notes = analysis.notes
    if holes := holes_of(analysis):
        missing = "" if notes.broken_count else "; lines are missing, or there twice"
        return Answer("unknown", f"{notes.broken_count} lines of the journal are broken{missing}", evidence(holes))
    torn = ", its last line is torn" if notes.torn else ""
    return Answer("pass", f"{notes.lines} lines read{torn}" if notes.lines else "read")


CHECKS = [
    Check("run-finished", "the run reached its planned end", run_finished),
    Check("activities-alive", "no activity of the rig died", activities_alive),
    Check("controller-sound", "the controller did not stall; at most 0.5 % of the requests are void", controller_sound),
    Check("journal-sound", "the journal can be read in full", journal_sound),
]
