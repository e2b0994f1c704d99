"""All runs of a folder in the order in which they were begun, each with its verdict and headline figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from rig.analysis.recovery.figures import distribution
from rig.errors import JournalError
from rig.journal.run import RUN_FILE, RunInfo, read_info
from rig.report.figures import SCHEMA
from rig.report.json import report_json
from rig.report.write import JSON_FILE, read_report

MAX_RUNS: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Night:
    """One run. `serve_*` are of all affected models in seconds; `serve_above`: the median never ended.

    A run whose journal cannot be read has `problem`, and nothing else.
    """

    run: str
    started: str
    wall_start: float
    seed: int
    embedded: bool
    series: str  # what it may be compared with: inventory, workload, plan, pace
    problem: str | None = None
    verdict: str = "unknown"
    finished: bool = False
    duration_s: float = 0.0
    requests: int = 0
    exposed: int = 0
    errors: int = 0
    lost: int = 0
    faults: int = 0
    not_recovered: int = 0
    serve_median_s: float | None = None
    serve_above: bool = False
    serve_worst_s: float | None = None
    ttft_p50_s: float | None = None


def read_history(results: Path, last: int | None = None) -> list[Night]:
    """The runs in this folder, oldest first; with `last` only so many of the latest.

    Figures come from a run's own `summary.json` where that is younger than its journal, else the journal is read.
    """
    folders = [path.parent for path in results.glob(f"*/{RUN_FILE}")][:MAX_RUNS]
    infos: list[tuple[RunInfo, Path]] = []
    for folder in folders:
        try:
            infos.append((read_info(folder), folder))
        except JournalError:
            continue
    infos.sort(key=lambda pair: (pair[0].wall_start, pair[0].run))
    return [_night(info, folder) for info, folder in infos[-last if last else 0 :]]


def _night(info: RunInfo, folder: Path) -> Night:
    known: dict[str, Any] = {
        "run": folder.name,
        "started": info.wall_start_iso,
        "wall_start": info.wall_start,
        "seed": info.seed,
        "embedded": info.embedded,
        "series": series_of(info),
    }
    try:
        return Night(**known, **_figures(_summary(folder)))
    except JournalError as error:
        return Night(**known, problem=error.message)


def series_of(info: RunInfo) -> str:
    names = [str(part.get("name")) for part in (info.inventory, info.workload, info.plan)]
    behaviour = f", {info.behaviour}" if info.embedded else ""
    return f"{' / '.join(names)}{behaviour}, pace {info.pace:g}"


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / JSON_FILE
    try:
        newest = max((one.stat().st_mtime_ns for one in folder.glob("journal*.jsonl")), default=0)
        if path.stat().st_mtime_ns >= newest:
            found = msgspec.json.decode(path.read_bytes())
            if isinstance(found, dict) and cast("dict[str, Any]", found).get("schema") == SCHEMA:
                return cast("dict[str, Any]", found)
    except (OSError, msgspec.DecodeError):
        pass  # there is none, or it is of no use: the journal says it all
    report = read_report(folder)
    return report_json(report.analysis, report.verdict)


def _figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    requests, run = summary["requests"], summary["run"]
    affected = [one for one in summary["recoveries"] if one["class"] != "unaffected"]
    serve = distribution(
        [one["time_to_serve_s"] for one in affected if one["time_to_serve_s"] is not None],
        [one["at_least_s"] for one in affected if one["time_to_serve_s"] is None],
    )
    return {
        "verdict": summary["verdict"],
        "finished": run["finished"],
        "duration_s": run["duration_s"],
        "requests": requests["started"],
        "exposed": requests["exposed"],
        "errors": requests["error"],
        "lost": requests["lost_not_own_node"],
        "faults": sum(fault["effective"] for fault in summary["faults"]),
        "not_recovered": sum(one["class"] == "not recovered" for one in affected),
        "serve_median_s": None if serve.median is None else serve.median.value_s,
        "serve_above": serve.median is not None and serve.median.above,
        "serve_worst_s": None if serve.worst is None else serve.worst.value_s,
        "ttft_p50_s": summary["latency"]["all"]["ttft"]["good"]["p50_s"],
    }
