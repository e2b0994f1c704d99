"""Endings of soaks, made side by side: each lane is a cluster of its own, on which the chosen cases run in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import pytest

from tests.soak.endings import Act, Ending, label
from tests.soak.lane import Lane, end_lane, start_lane

LANES = 3


class Endings:
    """`of(act)` waits for what came of one case; all are made in the background, as many at once as there are lanes."""

    def __init__(self, folder: Path, acts: Iterable[Act], pool: ThreadPoolExecutor) -> None:
        self._folder = folder
        chosen = list(dict.fromkeys(acts))
        self._lanes: SimpleQueue[Lane] = SimpleQueue()
        folders = [folder / f"lane-{number}" for number in range(min(LANES, len(chosen)))]
        self.started = list(pool.map(start_lane, folders))
        for lane in self.started:
            self._lanes.put(lane)
        self._made = {act: pool.submit(self._make, number, act) for number, act in enumerate(chosen)}

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


def _acts(items: Iterable[pytest.Item]) -> list[Act]:
    """The cases of some tests: the values of their parameter `act`."""
    params = [item.callspec.params for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    return [cast("Act", each["act"]) for each in params if "act" in each]


@pytest.fixture(scope="module")
def endings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    """Those of one file. Clusters that live on while other files are tested would starve these."""
    acts = _acts(item for item in request.session.items if item.path == request.path)
    with ThreadPoolExecutor(LANES) as pool:
        made = Endings(tmp_path_factory.mktemp("endings"), acts, pool)
        yield made
        pool.shutdown(cancel_futures=True)
        for lane in made.started:
            end_lane(lane)


@pytest.fixture
def ending(endings: Endings, act: Act) -> Ending:
    return endings.of(act)
