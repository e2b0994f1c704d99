"""Endings of soaks, made side by side: each lane is a cluster of its own, on which the chosen cases run in turn."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.soak.endings import Act, Ending, label
from tests.soak.lane import Lane, end_lane, start_lane

LANES = 3


class Endings:
    """`of(act)` waits for what came of one case; all cases that are to be tested were begun at the start."""

    def __init__(self, folder: Path, acts: list[Act], pool: ThreadPoolExecutor) -> None:
        self._folder = folder
        self._pool = pool
        self._lanes: SimpleQueue[Lane] = SimpleQueue()
        self.started: list[Lane] = []
        count = min(LANES, len(acts))
        for lane in pool.map(start_lane, [folder / f"lane-{number}" for number in range(count)]):
            self.started.append(lane)
            self._lanes.put(lane)
        self._made: dict[Act, Future[Ending]] = {
            act: pool.submit(self._make, number, act) for number, act in enumerate(acts)
        }

    def _make(self, number: int, act: Act) -> Ending:
        work = self._folder / f"{number}-{label(act)}"
        work.mkdir()
        lane = self._lanes.get()
        try:
            return act(lane, work)
        finally:
            self._lanes.put(lane)

    def of(self, act: Act) -> Ending:
        return self._made[act].result()


def _wanted(items: list[pytest.Item]) -> list[Act]:
    """The cases of the tests that were selected: the values of their parameter `act`."""
    found: dict[Act, None] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "act" in callspec.params:
            found[callspec.params["act"]] = None
    return list(found)


@pytest.fixture(scope="session")
def endings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    with ThreadPoolExecutor(LANES) as pool:
        made = Endings(tmp_path_factory.mktemp("endings"), _wanted(request.session.items), pool)
        yield made
        pool.shutdown(cancel_futures=True)
        for lane in made.started:
            end_lane(lane)


@pytest.fixture
def ending(endings: Endings, act: Act) -> Ending:
    return endings.of(act)
