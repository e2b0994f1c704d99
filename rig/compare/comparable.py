"""Whether two runs say anything about each other: the same machines, load and faults, both to their end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rig.analysis.analyse import Analysis
from rig.compare.samples import Samples
from rig.journal.run import RunInfo
from rig.written import duration


def aborted(run: Samples) -> bool:
    """Whether the rig had to give the target up: no accident, but the worst result there is."""
    return run.analysis.ended is not None and run.analysis.ended.reason == "aborted"


def objections(base: Samples, head: Samples) -> list[str]:
    """Why they cannot be compared, a line each; empty when they can."""
    one, other = base.analysis.info, head.analysis.info
    found = [f"{base.name} did not finish"] if not base.analysis.finished else []
    if not head.analysis.finished and not aborted(head):
        found.append(f"{head.name} did not finish")
    if one.embedded != other.embedded:
        embedded = base if one.embedded else head
        found.append(f"{embedded.name} ran on the embedded cluster, the other on real nodes")
    if one.pace != other.pace:
        found.append(f"pace {one.pace:g} against {other.pace:g}")
    found += _differences("inventory", _inventory(one), _inventory(other))
    found += _differences("workload", one.workload, other.workload)
    found += _differences("fault plan", _plan(one), _plan(other))
    return found


def remarks(base: Analysis, head: Analysis) -> list[str]:
    """What differs and may be just what is compared."""
    one, other = base.info, head.info
    found: list[str] = []
    for name, left, right in (
        ("behaviour of the embedded cluster", one.behaviour, other.behaviour),
        ("seed", one.seed, other.seed),
        ("planned length", duration(one.duration_s), duration(other.duration_s)),
        ("rig", _rig(one), _rig(other)),
        ("target", _target(one), _target(other)),
    ):
        if left != right:
            found.append(f"{name}: {left} against {right}")
    return found


def _rig(info: RunInfo) -> str:
    return f"{info.rig_version} {(info.rig_revision or '')[:12]}".strip()


def _target(info: RunInfo) -> str:
    return ", ".join(sorted({(revision or "unknown")[:12] for revision in info.target_revisions.values()})) or "unknown"


def _inventory(info: RunInfo) -> dict[str, Any]:
    """Which machines, and what may be done to them. An embedded cluster's ports, keys and folders are new each time."""
    nodes = _mapping(info.inventory.get("nodes"))
    described: dict[str, Any] = {}
    for name, node in nodes.items():
        host = _mapping(_mapping(node).get("ssh")).get("host")
        described[str(name)] = {"faults": _mapping(node).get("faults", True)} | (
            {} if info.embedded else {"host": host}
        )
    return {"nodes": described, "groups": info.inventory.get("groups"), "target": info.inventory.get("target")}


def _plan(info: RunInfo) -> dict[str, Any]:
    """A plan's own seed only orders its faults, and its name is not what it does."""
    return {key: value for key, value in info.plan.items() if key not in ("seed", "name")}


def _differences(what: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    places = [place for place in _unlike("", left, right) if place != "name"]
    if not places:
        return []
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return [f"another {what}: {', '.join(places[:3])}{more}"]


def _unlike(place: str, left: Any, right: Any) -> list[str]:
    """Where two nested values differ, as dotted names."""
    if isinstance(left, dict) and isinstance(right, dict):
        one, other = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return [
            found
            for key in dict.fromkeys([*one, *other])
            for found in _unlike(f"{place}.{key}" if place else str(key), one.get(key), other.get(key))
        ]
    return [] if left == right else [place]


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
