"""What exo 0.3.70 does to some instances and not to others, and what it costs to look at a node. Pure.

A habit falls on an instance as a whole: every node draws alike, from its id.
"""

from __future__ import annotations

import math
import random
from typing import Final

from rig.lab.exo.context import Context

CRASH_TRACEBACK: Final = """Traceback (most recent call last):
  File "exo/worker/runner/bootstrap.py", line 71, in entrypoint
    runner.main()
  File "exo/worker/runner/llm_inference/runner.py", line 212, in main
    self.generator.submit(task)
ValueError: [broadcast_shapes] Shapes (1,4,20,16) and (1,4,19,16) cannot be broadcast."""
_BUSY_AT: Final = 4  # so many open requests double what a look costs


def falls_on(habit: str, instance_id: str, chance: float) -> bool:
    return chance > 0.0 and random.Random(f"{habit} {instance_id}").random() < chance


class Costs:
    """How long a node takes to answer what it is asked, besides the way there and back.

    Every path below `/state` keeps the node's event loop busy: looks wait for each other. Tokens do not wait for them.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._busy_until = -math.inf
        self._cards_loaded: float | None = None  # when they are, once something asked for them

    def state(self, now: float, *, whole: bool, open_requests: int) -> float:
        """Seconds until the answer to `/state`, or to a path below it."""
        timers = self._ctx.timers
        if not self._ctx.behaviour.dear_api:
            return 0.0
        look_s = timers.state_whole_s if whole else self._ctx.rng.uniform(timers.state_low_s, timers.state_high_s)
        self._busy_until = max(now, self._busy_until) + look_s * _load(open_requests)
        return self._busy_until - now

    def events(self, count: int, *, open_requests: int) -> float:
        """Seconds until the answer to `/events`, of so many events."""
        if not self._ctx.behaviour.dear_api:
            return 0.0
        return count * self._ctx.timers.event_read_s * _load(open_requests)

    def deployment(self, now: float) -> float:
        """Seconds until the answer to `POST /deployments`: the first makes it load all model cards."""
        if not self._ctx.behaviour.dear_api:
            return 0.0
        if self._cards_loaded is None:
            self._cards_loaded = now + self._ctx.timers.first_deploy_s
        return max(0.0, self._cards_loaded - now)


def _load(open_requests: int) -> float:
    return 1.0 + open_requests / _BUSY_AT
