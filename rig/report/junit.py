"""The checks of a run as JUnit XML, so that a build server shows them like tests.

One test case a check: fail becomes a failure, unknown an error, not exercised is skipped. A check that the plan
requires and that was not exercised is an error, and so is a required one that there is not: the verdict is unknown
then, and no part of it may look green.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree as ET

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import CheckResult
from rig.analysis.verdict import Verdict
from rig.report.words import stamp, unfinished_line
from rig.visible import visible

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0


def junit(analysis: Analysis, verdict: Verdict) -> bytes:
    """One suite in the common schema of JUnit reports (that of Ant, which build servers accept)."""
    required = set(analysis.settings.requires)
    missing = sorted(required - {check.name for check in verdict.checks})
    cases = [_case(check, required=check.name in required) for check in verdict.checks]
    cases += [_missing(name) for name in missing]
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")}
    suite = ET.Element(
        "testsuite",
        {
            "name": f"rig {_text(analysis.info.run)}",
            "package": "rig",
            "id": "0",
            "timestamp": analysis.info.wall_start_iso[:19],
            "hostname": "localhost",
            "tests": str(len(cases)),
            "failures": str(counts["failure"]),
            "errors": str(counts["error"]),
            "skipped": str(counts["skipped"]),
            "time": f"{analysis.end_t:.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(analysis, verdict).items():
        ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    suite.extend(cases)
    ET.SubElement(suite, "system-out").text = _text("\n".join(_said(analysis)))
    ET.SubElement(suite, "system-err").text = ""
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="utf-8") + b"\n"


def _case(check: CheckResult, *, required: bool) -> ET.Element:
    case = ET.Element("testcase", {"classname": "rig.checks", "name": check.name, "time": "0"})
    body = _text("\n".join([check.promise, *check.evidence]))
    match check.status:
        case "pass":
            pass
        case "fail":
            _add(case, "failure", check.summary, body)
        case "unknown":
            _add(case, "error", check.summary, body)
        case "not-exercised" if required:
            _add(case, "error", f"required by the plan but not exercised: {check.summary}", body)
        case "not-exercised":
            ET.SubElement(case, "skipped", {"message": _text(check.summary)})
    return case


def _missing(name: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": "rig.checks", "name": _text(name), "time": "0"})
    _add(case, "error", "required by the plan, but there is no such check", "")
    return case


def _add(case: ET.Element, tag: str, summary: str, body: str) -> None:
    element = ET.SubElement(case, tag, {"type": tag, "message": _text(summary)})
    element.text = body


def _properties(analysis: Analysis, verdict: Verdict) -> dict[str, str]:
    info, total = analysis.info, analysis.requests.total
    return {
        "run": info.run,
        "verdict": verdict.word,
        "exit_code": str(verdict.exit_code),
        "seed": str(info.seed),
        "pace": f"{info.pace:g}",
        "embedded": str(info.embedded).lower(),
        "finished": str(analysis.finished).lower(),
        "rig_version": info.rig_version,
        "rig_revision": info.rig_revision or "",
        "inventory": str(info.inventory.get("name")),
        "workload": str(info.workload.get("name")),
        "plan": str(info.plan.get("name")),
        "requests": str(total.started),
        "lost_not_own_node": str(total.lost_not_own_node),
        "faults": str(sum(fault.effective for fault in analysis.faults)),
    }


def _said(analysis: Analysis) -> list[str]:
    return [line for line in (stamp(analysis), unfinished_line(analysis)) if line]


def _text(value: str) -> str:
    """Without what XML cannot hold: evidence is the tail of a body, and may be anything."""
    return _FORBIDDEN.sub("\ufffd", visible(value))
