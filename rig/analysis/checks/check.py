"""What a check is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rig.analysis.analyse import Analysis

Status: TypeAlias = Literal["pass", "fail", "unknown", "not-exercised"]
MAX_EVIDENCE: Final = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """`summary` is one line; `evidence` names times, ids, faults: at most 20 lines, the last says how many more."""

    status: Status
    summary: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    promise: str  # what must hold, in one line
    judge: Callable[[Analysis], Answer]


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    promise: str
    status: Status
    summary: str
    evidence: tuple[str, ...]


def evidence(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines, cut to a bounded number."""
    if len(lines) <= MAX_EVIDENCE:
        return tuple(lines)
    return (*lines[: MAX_EVIDENCE - 1], f"and {len(lines) - MAX_EVIDENCE + 1} more")
