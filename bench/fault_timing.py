"""How exactly faults strike: on the embedded cluster, by the nodes' own clocks.

    python -m bench.fault_timing [--minutes 1.5] [--run FOLDER] [--json FILE]

Runs a short soak of crashes, freezes, killed runners and faults on two nodes (or reads a run that is there), and
compares, by the clocks of the nodes mapped to the run's,

- the moment a strike was due with the one at which the node's script proved its effect;
- the moments of several nodes of one fault with each other;
- the hold with what was asked for;
- and says how far apart the attempts were from which each time to serve was taken.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from bench.table import conclude
from rig.analysis.analyse import analyse_run
from rig.journal.read import Run, read_run
from rig.journal.records import ClockOffset, FaultChanged

PLAN: Final = """
name: timing
gap: 30s..50s
baseline: 1m
settle: 4m
sustained: 15s
blast_radius: 2
shuffle: true
kinds:
  node-crash:
    hold: 5s..15s
  freeze:
    hold: 5s..20s
  runner-kill: {}
  double:
    hold: 5s..15s
    halves: [freeze, node-crash]
"""
TARGETS_MS: Final = {"strike late": 50.0, "between nodes": 20.0, "hold error": 20.0}


@dataclass
class _Story:
    """What was written of one fault."""

    kind: str
    due_t: float
    hold_s: float
    states: dict[str, FaultChanged] = field(default_factory=dict[str, FaultChanged])


def stories(run: Run) -> list[_Story]:
    found: dict[int, _Story] = {}
    for record in run.records():
        if isinstance(record, FaultChanged):
            if record.state == "planned":
                found[record.fault] = _Story(record.fault_kind, record.at_t, record.hold_s)
            elif record.fault in found:
                found[record.fault].states.setdefault(record.state, record)
    return [story for story in found.values() if "struck" in story.states]


def node_times(story: _Story, state: str, offsets: dict[str, float]) -> list[float]:
    """When each node's script entered the state, on the run's clock."""
    record = story.states.get("healed") or story.states["struck"]
    found: list[float] = []
    for node, value in record.evidence.items():
        events = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        event = events.get(state)
        if isinstance(event, dict) and node in offsets:
            found.append(float(cast("dict[str, Any]", event)["node_t"]) + offsets[node])
    return found


def timing(run: Run) -> dict[str, list[float]]:
    """Milliseconds by what they are of."""
    offsets = {record.node: record.offset_s for record in run.records() if isinstance(record, ClockOffset)}
    found: dict[str, list[float]] = {"strike late": [], "between nodes": [], "hold error": [], "clock error": []}
    for story in stories(run):
        struck = story.states["struck"]
        found["clock error"].append(struck.at_error_s * 1000)
        times = node_times(story, "struck", offsets)
        found["strike late"].append((struck.at_t - story.due_t) * 1000)
        if len(times) > 1:
            found["between nodes"].append((max(times) - min(times)) * 1000)
        healing = node_times(story, "healing", offsets)
        if story.hold_s and healing and times:
            found["hold error"].append(abs(min(healing) - min(times) - story.hold_s) * 1000)
    return found


def resolutions(run: Run) -> list[float]:
    return [recovery.resolution_s * 1000 for recovery in analyse_run(run).recoveries if recovery.affected]


def _percentiles(values: Iterable[float]) -> tuple[int, float, float, float]:
    ordered = sorted(values)
    if not ordered:
        return 0, float("nan"), float("nan"), float("nan")
    return (
        len(ordered),
        ordered[len(ordered) // 2],
        ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        ordered[-1],
    )


def rows(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, values in {**timing(run), "resolution of time to serve": resolutions(run)}.items():
        count, p50, p99, worst = _percentiles(values)
        found.append(
            {
                "what": name,
                "count": count,
                "p50_ms": round(p50, 1),
                "p99_ms": round(p99, 1),
                "worst_ms": round(worst, 1),
                "target_ms": TARGETS_MS.get(name),
                "met": p99 <= TARGETS_MS[name] if name in TARGETS_MS and count else None,
            }
        )
    return found


def _plan(folder: Path) -> Path:
    path = folder / "timing.yaml"
    path.write_text(PLAN)
    return path


def _soak(minutes: float, folder: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "rig",
        "soak",
        "--minutes",
        str(minutes),
        "--yes",
        "--faults",
        str(_plan(folder)),
        "--out",
        str(folder),
        "--name",
        "timing",
    ]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=minutes * 60 + 180)
    return folder / "timing"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--run", type=Path, help="a run that is there already")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        run = read_run(given.run or _soak(given.minutes, Path(folder)))
        found = rows(run)
        interval_ms = 250 / run.info.pace
    return conclude(
        f"Fault timing at pace {run.info.pace:g}; quick probes every {max(interval_ms, 100):.0f} ms", found, given.json
    )


if __name__ == "__main__":
    sys.exit(main())
