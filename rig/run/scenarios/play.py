"""One scenario, step by step. What it expects and what it cannot do goes to the journal; nothing is raised for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from rig.clock import Pace
from rig.journal.records import Expected
from rig.journal.records import Step as StepRecord
from rig.journal.write import Journal
from rig.run.scenarios.asking import Asking, NotAsked
from rig.run.scenarios.harming import Harming, NotHarmed
from rig.run.scenarios.known import Before, Known
from rig.run.scenarios.scenario import Condition, Scenario, Step
from rig.run.scenarios.waiting import Outcome, Waiting

_State = Literal["begun", "done", "failed"]


class StepFailed(Exception):
    """The rest of the scenario would prove nothing."""


@dataclass
class Player:
    known: Known
    asking: Asking
    harming: Harming
    waiting: Waiting
    journal: Journal
    pace: Pace

    async def play(self, scenario: Scenario, stop: asyncio.Event) -> bool:
        """Whether it came to its end. A failed expectation does not end it; a step that cannot be taken does."""
        before = self.known.now()
        try:
            for index, step in enumerate(scenario.steps):
                if stop.is_set():
                    return False
                at_start = self.known.now()
                self._write(index, step, "begun")
                try:
                    await self._take(index, step, at_start if _acts(step) else before)
                except (StepFailed, NotAsked, NotHarmed, TimeoutError) as failure:
                    self._write(index, step, "failed", f"{failure}" or type(failure).__name__)
                    self._expected(index, step, Outcome("unknown", f"the scenario got no further: {failure}"))
                    return False
                self._write(index, step, "done")
                if _acts(step):
                    before = at_start
            return True
        finally:
            await self.harming.heal()

    async def _take(self, index: int, step: Step, before: Before) -> None:
        if step.expect is not None:
            self._expected(index, step, await self.waiting.until(step.expect, before))
        elif step.wait_for is not None:
            await self._wait_for(step.wait_for, before)
        elif step.pause is not None:
            await asyncio.sleep(self.pace.scale(step.pause))
        elif step.crash is not None:
            await self.harming.crash(step.crash)
        elif step.restart is not None:
            await self.harming.restart(step.restart)
        elif step.strike is not None:
            await self.harming.strike(step.strike)
        elif step.lose is not None:
            await self.harming.lose(step.lose)
        else:
            await self._ask(index, step)

    async def _wait_for(self, condition: Condition, before: Before) -> None:
        outcome = await self.waiting.until(condition, before)
        if outcome.status != "pass":
            raise StepFailed(f"{condition.text()}: {outcome.seen}")

    async def _ask(self, index: int, step: Step) -> None:
        if step.place is not None:
            if await self.asking.place(step.place) is None:
                raise StepFailed("the instance asked for by hand did not appear")
            return
        if step.deploy is not None:
            wanted, status = step.deploy.status, await self.asking.deploy(step.deploy)
        elif step.delete is not None:
            wanted, status = step.delete.status, await self.asking.delete(step.delete)
        elif step.delete_instance is not None:
            wanted, status = step.delete_instance.status, await self.asking.delete_instance(step.delete_instance)
        else:
            raise StepFailed("a step without anything to do")
        self._expected(index, step, Outcome("pass" if status == wanted else "fail", f"answered {status}"))

    def _expected(self, index: int, step: Step, outcome: Outcome) -> None:
        t = self.journal.now()
        self.journal.write(
            Expected(t=t, step=index + 1, text=step.text(), status=outcome.status, evidence=outcome.seen)
        )

    def _write(self, index: int, step: Step, state: _State, detail: str = "") -> None:
        t = self.journal.now()
        self.journal.write(StepRecord(t=t, step=index + 1, text=step.text(), state=state, detail=detail))


def _acts(step: Step) -> bool:
    """Whether it changes something, so that what follows is compared with how things stood before it."""
    return step.expect is None and step.wait_for is None and step.pause is None
