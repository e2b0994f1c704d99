"""What the controller itself must see of the processes that a script says it hit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Says: TypeAlias = Literal["agrees", "disagrees", "silent"]


@dataclass(frozen=True)
class Hit:
    """Processes (`pid:start`) that a script names, and the state in which each was seen a moment later: absent, gone.

    `main` is the one that it says it spared.
    """

    pids: Sequence[str]
    states: Mapping[str, str]
    main: str | None = None


@dataclass(frozen=True)
class Witness:
    """`judge` compares. `while_held`: what it looks for is over with the hold."""

    judge: Callable[[Hit], tuple[Says, str]]
    while_held: bool


def _stopped(hit: Hit) -> tuple[Says, str]:
    awake = [f"{pid} ({hit.states[pid]})" for pid in hit.pids if hit.states.get(pid, "T") not in ("T", "Z")]
    stopped = sum(hit.states.get(pid) == "T" for pid in hit.pids)
    if awake or not stopped:
        return "disagrees", f"not stopped: {', '.join(awake) or 'all are gone'}"
    return "agrees", f"{stopped} of {len(hit.pids)} seen in state T"


def _at_work(hit: Hit) -> tuple[Says, str]:
    gone = [pid for pid in hit.pids if hit.states.get(pid, "Z") in ("Z", "T")]
    if gone:
        return "disagrees", f"not running: {', '.join(gone)}"
    return "agrees", f"{len(hit.pids)} seen at work"


def _gone(hit: Hit) -> tuple[Says, str]:
    alive = [pid for pid in hit.pids if hit.states.get(pid, "Z") != "Z"]
    if alive:
        return "disagrees", f"still alive: {', '.join(alive)}"
    return "agrees", f"{len(hit.pids)} gone"


def _gone_alone(hit: Hit) -> tuple[Says, str]:
    if hit.main and hit.states.get(hit.main, "Z") == "Z" and _gone(hit)[0] == "agrees":
        return "disagrees", f"the main process {hit.main} is gone as well"
    return _gone(hit)


STOPPED: Final = Witness(_stopped, while_held=True)
AT_WORK: Final = Witness(_at_work, while_held=True)
GONE: Final = Witness(_gone, while_held=False)
GONE_ALONE: Final = Witness(_gone_alone, while_held=False)
