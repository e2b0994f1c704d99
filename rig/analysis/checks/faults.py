"""Checks that the faults were what they were meant to be: a run whose faults did nothing proves nothing."""

from __future__ import annotations

from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.analysis.recovery.faults import Fault

LEAST_EXPOSED: Final = 5
"""Requests that must have been exposed to a kind of fault before its absence of losses means anything."""


def faults_effective(analysis: Analysis) -> Answer:
    reached = [fault for fault in analysis.faults if not fault.skipped]
    if not reached:
        return Answer("not-exercised", "no fault was injected")
    without = [fault for fault in reached if fault.ineffective]
    if without:
        said = f"{len(without)} of {len(reached)} faults had no effect"
        return Answer("fail", said, evidence([_describe(fault) for fault in without]))
    doubtful = [fault for fault in reached if fault.invalid or (fault.struck_t is None and fault.state != "planned")]
    if doubtful:
        said = f"{len(doubtful)} of {len(reached)} faults: effect not confirmed"
        return Answer("unknown", said, evidence([_describe(fault) for fault in doubtful]))
    return Answer("pass", f"all {sum(fault.effective for fault in reached)} faults proved to have taken effect")


def faults_healed(analysis: Analysis) -> Answer:
    struck = [fault for fault in analysis.faults if fault.struck_t is not None]
    if not struck:
        return Answer("not-exercised", "no fault was struck")
    unhealed = [fault for fault in struck if fault.unhealed]
    if unhealed:
        return Answer("fail", f"{len(unhealed)} faults could not be undone", evidence([_describe(f) for f in unhealed]))
    silent = [fault for fault in struck if fault.healed_t is None]
    if silent:
        said = f"{len(silent)} faults: heal not confirmed"
        return Answer("unknown", said, evidence([_describe(fault) for fault in silent]))
    return Answer("pass", f"all {len(struck)} faults proved to be undone")


def every_kind_struck(analysis: Analysis) -> Answer:
    rows = {row.kind: row for row in analysis.kinds}
    due = [kind for kind in analysis.settings.plan_kinds if kind in analysis.settings.due_kinds or rows[kind].planned]
    if not due and analysis.settings.plan_kinds:
        return Answer("unknown", "no fault was due: the run was too short for its plan")
    if not due:
        return Answer("not-exercised", "the plan has no faults")
    stopped = {kind: sum(fault.stopped for fault in analysis.faults if fault.kind == kind) for kind in due}
    empty = [
        f"{kind}: {row.skipped} skipped, {row.ineffective} ineffective, {row.invalid} invalid of {row.planned}"
        for kind in due
        if (row := rows[kind]).planned
        and not row.effective
        and row.skipped + row.ineffective + row.invalid > stopped[kind]
    ]
    if empty:
        return Answer("fail", "some kinds of faults never took effect", evidence(empty))
    missing = [kind for kind in due if not rows[kind].effective]
    if missing:
        return Answer("unknown", f"due, but never struck: {', '.join(missing)}")
    return Answer("pass", f"all {len(due)} kinds took effect")


def exposure(analysis: Analysis) -> Answer:
    rows = [row for row in analysis.kinds if row.effective]
    if not analysis.requests.total.started:
        return Answer("not-exercised", "no request was sent")
    if not rows:
        return Answer("not-exercised", "no fault took effect")
    said = ", ".join(f"{row.kind} {row.exposed}" for row in rows)
    few = [row.kind for row in rows if row.exposed < LEAST_EXPOSED]
    if few:
        return Answer("unknown", f"fewer than {LEAST_EXPOSED} requests were exposed to {', '.join(few)} ({said})")
    return Answer("pass", f"exposed requests: {said}")


def _describe(fault: Fault) -> str:
    struck = "never struck" if fault.struck_t is None else f"struck at {fault.struck_t:.1f} s"
    reason = f": {fault.reason}" if fault.reason else ""
    return f"fault {fault.number} ({fault.kind}, {fault.aim}) {struck}, {fault.state}{reason}"


CHECKS = [
    Check("faults-effective", "every fault is proved to have taken effect", faults_effective),
    Check("faults-healed", "every fault is proved to be undone", faults_healed),
    Check("every-kind-struck", "every kind of fault that was due took effect", every_kind_struck),
    Check("exposure", f"at least {LEAST_EXPOSED} requests were exposed to each kind of fault", exposure),
]
