"""`run.json`: what is known of a run before its first record. Written once, atomically, and never changed."""

from __future__ import annotations

from typing import Any

import msgspec


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True):
    fault: int
    kind: str
    aim: str
    hold_s: float
    gap_s: float


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """All durations are as the run used them, that is divided by `pace`."""

    run: str  # the folder's name
    wall_start: float  # Unix seconds at t = 0
    wall_start_iso: str
    rig_version: str
    rig_revision: str | None
    python: str
    seed: int
    duration_s: float
    pace: float
    embedded: bool
    behaviour: str | None  # of the embedded cluster
    inventory: dict[str, Any]  # as used; no key material
    workload: dict[str, Any]
    plan: dict[str, Any]
    schedule: list[PlannedFault]  # the sequence, longer than what will be reached
    expected_faults: int
    target_revisions: dict[str, str | None]  # per node
    pids_allowed: dict[str, list[str]]  # what the first contact named: "pid start command"
    versions: dict[str, str]
