"""Checks of how models came back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.analysis.checks.rig import controller_sound
from rig.analysis.recovery.decision import Recovery
from rig.written import duration

Fared: TypeAlias = Literal["pass", "fail", "unknown", "cut short"]


def recovered(analysis: Analysis) -> Answer:
    recoveries = analysis.recoveries
    if not recoveries:
        return Answer("not-exercised", "no fault took effect")
    failed = [recovery for recovery in recoveries if recovery.recovery_class == "not recovered"]
    if failed:
        lines = [f"{_name(r)}: not within {duration(r.at_least_s)} after the heal{_hint(analysis, r)}" for r in failed]
        said = f"{len(failed)} of {len(recoveries)} recoveries failed"
        if analysis.stalls.records and controller_sound(analysis).status != "pass":
            return Answer("unknown", f"{said}, but the controller itself was not sound", evidence(lines))
        return Answer("fail", said, evidence(lines))
    censored = [recovery for recovery in recoveries if recovery.recovery_class == "censored"]
    if 2 * len(censored) > len(recoveries):
        lines = [f"{_name(r)}: watched for {duration(r.at_least_s)} only" for r in censored]
        return Answer(
            "unknown",
            f"{len(censored)} of {len(recoveries)} recoveries were cut short by the next fault or the end of the run",
            evidence(lines),
        )
    cut = f" ({len(censored)} cut short)" if censored else ""
    return Answer("pass", f"every model served again after every fault{cut}")


def _hint(analysis: Analysis, recovery: Recovery) -> str:
    """What the target tells of why the model may not have served."""
    own = analysis.watch.own
    hint = "" if own is None else own.hint(recovery.model, recovery.strike_t, recovery.until_t)
    return f"; {hint}" if hint else ""


def time_to_serve(analysis: Analysis) -> Answer:
    """From intervals: it fails when even the earliest possible moment was too late.

    What another fault or the end of the run cut short before its bound was neither late nor in time.
    """
    bounds = analysis.settings.bounds
    judged = [recovery for recovery in analysis.recoveries if recovery.fault_kind in bounds and recovery.affected]
    if not bounds:
        return Answer("not-exercised", "the plan sets no bound")
    if not judged:
        return Answer("not-exercised", "no model was affected by a fault with a bound")
    found: dict[Fared, list[str]] = {"pass": [], "fail": [], "unknown": [], "cut short": []}
    for recovery in judged:
        fared, line = _within(recovery, bounds[recovery.fault_kind])
        found[fared].append(line)
    if found["fail"]:
        return Answer(
            "fail", f"{len(found['fail'])} of {len(judged)} recoveries took too long", evidence(found["fail"])
        )
    if found["unknown"]:
        return Answer("unknown", "some recoveries are too close to their bound to tell", evidence(found["unknown"]))
    cut = f"{len(found['cut short'])} of {len(judged)} recoveries were cut short before their bounds"
    if not found["pass"]:
        return Answer("not-exercised", cut)
    return Answer(
        "pass", f"all {len(found['pass'])} recoveries within their bounds" + (f"; {cut}" if found["cut short"] else "")
    )


def _within(recovery: Recovery, bound_s: float) -> tuple[Fared, str]:
    name, took_s = _name(recovery), recovery.time_to_serve_s
    if took_s is None:
        line = f"{name}: over {duration(recovery.at_least_s)}, bound {duration(bound_s)}"
        over = recovery.at_least_s - recovery.error_s > bound_s or recovery.recovery_class == "not recovered"
        return ("fail" if over else "cut short"), line
    line = f"{name}: {duration(took_s)}, bound {duration(bound_s)} (resolution {duration(recovery.resolution_s)})"
    if took_s - recovery.resolution_s - recovery.error_s > bound_s:
        return "fail", line
    return ("unknown" if took_s + recovery.error_s > bound_s else "pass"), line


def _name(recovery: Recovery) -> str:
    return f"fault {recovery.fault} ({recovery.fault_kind}), {recovery.model}"


CHECKS = [
    Check("recovered", "every model serves again after every fault, by itself", recovered),
    Check("time-to-serve", "models serve again within the bounds of the plan", time_to_serve),
]
