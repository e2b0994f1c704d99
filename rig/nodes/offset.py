"""Between a node's monotonic clock and the run's: an offset with its error, from bracketed readings, as NTP does it.

Each reading bounds the offset: the node read its clock after we asked and before we heard. Every bound holds, so their
intersection does; a few readings, spread over more than one tick of the node's clock, narrow it to milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from rig.clock import Clock
from rig.nodes.node import NodeConnection

SAMPLES = 10
SPREAD_S = 0.003


@dataclass(frozen=True)
class Offset:
    """run clock = node clock + offset_s, within ± error_s."""

    offset_s: float
    error_s: float
    round_trip_s: float  # the best one
    tick_s: float = 0.0  # of the node's clock, which is cut off to it

    def moment(self, node_t: float) -> tuple[float, float]:
        """When something happened whose time a node noted, on the run's clock, and how uncertain that is."""
        return self.to_run(node_t) + self.tick_s / 2, self.error_s + self.tick_s / 2

    def to_run(self, node_t: float) -> float:
        return node_t + self.offset_s

    def to_node(self, t: float) -> float:
        return t - self.offset_s


@dataclass(frozen=True)
class Reading:
    """Asked at `sent_t`, heard at `heard_t` (run clock); the node said `node_t`, cut off to `resolution_s`."""

    sent_t: float
    heard_t: float
    node_t: float
    resolution_s: float


def estimate(readings: Sequence[Reading]) -> Offset:
    """The offset that all readings allow; if there is none (a clock stepped), that of the best reading alone. Pure."""
    best = min(readings, key=lambda reading: reading.heard_t - reading.sent_t)
    low = max(_low(reading) for reading in readings)
    high = min(_high(reading) for reading in readings)
    if low > high:
        low, high = _low(best), _high(best)
    tick_s = max(reading.resolution_s for reading in readings)
    return Offset((low + high) / 2, (high - low) / 2, best.heard_t - best.sent_t, tick_s)


async def measure(conn: NodeConnection, clock: Clock, *, samples: int = SAMPLES, timeout_s: float = 5.0) -> Offset:
    """Reads the node's clock a few times in one session (about 50 ms). Raises NodeError."""
    readings: list[Reading] = []
    async with conn.clock(timeout_s=timeout_s) as read:
        for _ in range(samples):
            await asyncio.sleep(SPREAD_S)
            sent_t = clock.now()
            node = await read()
            readings.append(Reading(sent_t, clock.now(), node.node_t, node.resolution_s))
    return estimate(readings)


def _low(reading: Reading) -> float:
    return reading.sent_t - reading.node_t - reading.resolution_s


def _high(reading: Reading) -> float:
    return reading.heard_t - reading.node_t
