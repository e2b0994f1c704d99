"""Conducts a run from its first phase to its last record, and watches its activities: none dies unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from rig.errors import FaultError, RigError
from rig.journal.records import ActivityDied, LockLost, Phase, PhaseStarted, RunEnded
from rig.journal.write import Journal
from rig.run.halting import Halt

Activity = Literal["load", "injection", "observe", "prober"]
Course: TypeAlias = Callable[[], Awaitable[str]]
"""What a run does; returns a remark for the record of its end, or nothing."""

HURRY_S: Final = 2.0  # how long activities are awaited when the run is interrupted


@dataclass
class Activities:
    """The activities of one run."""

    journal: Journal
    halt: Halt
    phase: Phase = "setup"
    _tasks: dict[Activity, asyncio.Task[None]] = field(default_factory=dict[Activity, asyncio.Task[None]])

    async def conduct(self, course: Course, stop: Callable[[], Awaitable[None]]) -> RunEnded:
        """Runs the course, then `stop`, which ends every activity; writes the last record and returns it.

        A RigError ends the run as failed. Any other exception is a defect of the rig, raised after that.
        """
        telling = asyncio.create_task(self._tell_unlocked())
        detail, defect = "", None
        try:
            detail = await course()
        except RigError as error:
            self.halt.call("failed", error.message)
        except Exception as error:
            self.halt.call("failed", f"{type(error).__name__}: {error}")
            defect = error
        finally:
            await stop()
            telling.cancel()
        self.enter("end")
        ended = RunEnded(t=self.journal.now(), reason=self.halt.reason, detail=self.halt.detail or detail)
        if not self.journal.failed:
            self.journal.write(ended)
        if defect is not None:
            raise defect
        return ended

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        if not self.journal.failed:
            self.journal.write(PhaseStarted(t=self.journal.now(), phase=phase))

    def start(
        self,
        activity: Activity,
        work: Coroutine[Any, Any, None],
        *,
        aborted: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`aborted` is awaited when a FaultError of this activity ends the run."""
        self._tasks[activity] = asyncio.create_task(self._watched(activity, work, aborted))

    async def wait(self, activity: Activity, limit_s: float, *, hurry: bool = True) -> None:
        """Waits for an activity that has been told to stop; cancels it after `limit_s`, or `HURRY_S` after a hurry."""
        task = self._tasks.get(activity)
        if task is None:
            return
        hurried = asyncio.create_task(self.halt.hurry.wait())
        await asyncio.wait({task, hurried} if hurry else {task}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if hurry and not task.done():
            await asyncio.wait({task}, timeout=min(limit_s, HURRY_S))
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _watched(
        self, activity: Activity, work: Coroutine[Any, Any, None], aborted: Callable[[], Awaitable[None]] | None
    ) -> None:
        """A FaultError aborts the run; anything else is the death of an activity. Neither is ever a pass."""
        try:
            await work
        except FaultError as error:
            self.halt.call("aborted", error.message)
            if aborted is not None:
                await aborted()
        except Exception as error:  # whatever it is, the others must be stopped in order, and it must be said
            detail = f"{type(error).__name__}: {error}"
            self.halt.call("failed", f"{activity} died: {detail}")
            if not self.journal.failed:
                self.journal.write(ActivityDied(t=self.journal.now(), activity=activity, detail=detail))

    async def _tell_unlocked(self) -> None:
        """At once: what fails from then on says nothing of the target."""
        await self.halt.unlocked.wait()
        now = self.journal.now()
        since_t = max(now - (asyncio.get_running_loop().time() - self.halt.unlocked_at), 0.0)
        if not self.journal.failed:
            self.journal.write(LockLost(t=now, since_t=since_t, reason=self.halt.detail))
