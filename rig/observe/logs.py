"""Following the target's log on a node: who is master, with times, and the lines that matter.

The loss of the node is survived, and what was missed meanwhile is read then.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from rig.errors import NodeError
from rig.journal.records import Finding, LogLine, MasterSeen
from rig.journal.write import Journal
from rig.nodes.node import LoggedLine, NodeConnection
from rig.targets.target import HasPrimary

DELAY_S: Final = 0.2  # assumed bound from a line's writing to its arrival here: tail's wake-up and the network
RETRY_S: Final = 1.0
RETRY_MAX_S: Final = 30.0
MAX_LINES_PER_S: Final = 20
MAX_TEXT: Final = 500
MISSED_LINES: Final = 400  # looked at after a loss of the node


@dataclass(frozen=True)
class When:
    """A moment on the run's clock, and how far off it may be."""

    at_t: float
    error_s: float


class LineBudget:
    """At most so many lines a second; what is over is counted. Pure."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._second = float("-inf")
        self._used = 0
        self._dropped = 0

    def allow(self, now: float) -> bool:
        if now - self._second >= 1.0:
            self._second, self._used = now, 0
        self._used += 1
        if self._used > self._per_s:
            self._dropped += 1
            return False
        return True

    def take_dropped(self) -> int:
        dropped, self._dropped = self._dropped, 0
        return dropped


class LogFollower:
    """Follows one node's log."""

    def __init__(
        self,
        connection: NodeConnection,
        primary: HasPrimary,
        journal: Journal,
        *,
        max_lines_per_s: int = MAX_LINES_PER_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._connection = connection
        self._primary = primary
        self._journal = journal
        self._budget = LineBudget(max_lines_per_s)
        self._retry_s = retry_s
        self._last_line: str | None = None
        self._last_t: float | None = None  # when the node was last known to deliver
        self._missed: list[str] = []

    async def run(self) -> None:
        """Follow until cancelled. The loss of the node is a finding, and tried again with growing pauses."""
        pause_s = self._retry_s
        while True:
            began_t = self._journal.now()
            reason = await self._follow()
            self._last_t = self._journal.now()
            pause_s = self._retry_s if self._last_t - began_t > 2 * pause_s else min(2 * pause_s, RETRY_MAX_S)
            data = {"node": self._connection.name}
            self._journal.write(Finding(t=self._last_t, code="log-not-followed", text=reason[:500], data=data))
            await asyncio.sleep(pause_s)

    async def _follow(self) -> str:
        """Follow until it ends; why it did."""
        path = self._connection.node.process.log_path
        back = 1 if self._last_t is None else MISSED_LINES
        self._missed.clear()
        try:
            async with aclosing(self._connection.follow_log(path, self._primary.master_ere, back=back)) as lines:
                async for line in lines:
                    self._take(line)
            return f"the tail of {path} ended"
        except NodeError as error:
            return error.message

    def _take(self, line: LoggedLine) -> None:
        now = self._journal.now()
        match line.age:
            case "sign":
                self._tell_master(line.text, When(now, DELAY_S), past=True)
            case "past":
                self._missed.append(line.text)
            case "mark":
                self._tell_missed(now)
            case "new":
                self._last_line = line.text
                self._tell(line.text, When(now, DELAY_S))

    def _tell_missed(self, now: float) -> None:
        """Lines from while the node was away, without those that came before. Their time is somewhere in between."""
        lines, self._missed = self._missed, []
        before, self._last_line = self._last_line, lines[-1] if lines else self._last_line
        if self._last_t is None:
            return
        seen = [number for number, line in enumerate(lines) if line == before]
        half_s = (now - self._last_t) / 2
        for line in lines[seen[-1] + 1 :] if seen else lines:
            self._tell(line, When(self._last_t + half_s, half_s + DELAY_S))

    def _tell(self, line: str, when: When) -> None:
        self._tell_master(line, when)
        if not self._primary.log_sign(line).matters or not self._budget.allow(self._journal.now()):
            return
        dropped = self._budget.take_dropped()
        if dropped:
            self._write_line(f"({dropped} lines were dropped here: more than the journal takes in a second)", when)
        self._write_line(line, when)

    def _tell_master(self, line: str, when: When, *, past: bool = False) -> None:
        sign = self._primary.log_sign(line)
        if sign.claims_master is None:
            return
        record = MasterSeen(
            t=self._journal.now(),
            node=self._connection.name,
            is_master=sign.claims_master,
            source="log",
            at_t=when.at_t,
            at_error_s=when.error_s,
            past=past,
            elected=sign.elected,
        )
        self._journal.write(record)

    def _write_line(self, text: str, when: When) -> None:
        t, node = self._journal.now(), self._connection.name
        self._journal.write(LogLine(t=t, node=node, at_t=when.at_t, at_error_s=when.error_s, text=text[:MAX_TEXT]))
