from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rig.clock import RunClock
from rig.errors import JournalError
from rig.journal.records import EventSeen, InstanceServed, MasterSeen, Own
from rig.observe.observer import Observer
from rig.observe.own import own_health
from rig.observe.together import run_until
from rig.observe.watch import WatchTiming
from rig.targets.exo.api import Exo
from tests.observe.api import DATA, Api
from tests.observe.conftest import Written

FAST = WatchTiming(close_s=0.05, timeout_s=0.5, rare_s=0.2, index_s=0.05)


class Slept(RunClock):
    """Of a controller that slept."""

    def wall_drift(self) -> float:
        return 7.25


async def test_it_observes_until_it_is_told_to_stop(api: Api, exo: Exo, written: Written) -> None:
    before = asyncio.all_tasks()
    clock = Slept()
    written.journal.now, written.journal.wall_drift = clock.now, clock.wall_drift
    observer = Observer(exo, {"a": api.url}, written.journal, connections={}, timing=FAST, health=own_health)
    stop = asyncio.Event()
    running = asyncio.create_task(observer.run(stop))
    await written.until(lambda: any(isinstance(record, Own) for record in written.records))
    assert {instance.model for instance in observer.view.instances().values()} == {"lab/tiny-a", "lab/tiny-b"}
    assert observer.view.best() == "a"
    stop.set()
    async with asyncio.timeout(2):
        await running
    assert {record.wall_drift_s for record in written.records if isinstance(record, Own)} == {7.25}
    asked = len(api.asked)
    await asyncio.sleep(0.2)
    assert len(api.asked) == asked
    left = [repr(task.get_coro()) for task in asyncio.all_tasks() - before]
    assert [coroutine for coroutine in left if "RequestHandler" not in coroutine] == []  # those are the server's


async def test_a_journal_that_fails_ends_it_with_that_error(api: Api, exo: Exo, written: Written) -> None:
    observer = Observer(exo, {"a": api.url}, written.journal, connections={}, timing=FAST, health=own_health)
    running = asyncio.create_task(observer.run(asyncio.Event()))
    await written.until(lambda: bool(written.records))
    written.journal.failed = True
    api.answers["/state/runners"] = b"{}"
    with pytest.raises(JournalError):
        async with asyncio.timeout(5):
            await running


async def test_events_are_read_of_the_masters_and_who_served_is_journalled(
    api: Api, exo: Exo, written: Written
) -> None:
    other = Api()
    await other.start()
    observer = Observer(
        exo, {"a": api.url, "b": other.url}, written.journal, connections={}, timing=FAST, health=own_health
    )
    written.journal.write(MasterSeen(t=0, node="b", is_master=True, source="log", at_t=0))
    assert await observer.read_events() > 0
    assert {record.node for record in written.records if isinstance(record, EventSeen)} == {"b"}
    assert api.count("/events") == 0

    api.answers["/state/tasks"] = (DATA / "tasks.json").read_bytes()
    response, instance = "730564ba-e182-402f-8fb0-03b65ab98b53", "38ffba7e-2ac5-4671-8d51-dd235ff93ecd"
    assert await observer.who_served([response, "unknown"]) == {response: instance}
    served = [record for record in written.records if isinstance(record, InstanceServed)]
    assert [(record.node, record.response_ids, record.instance) for record in served] == [("a", [response], instance)]
    await other.stop()


async def test_activities_end_with_the_first_that_fails(tmp_path: Path) -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("endless")

    async def short() -> None:
        await asyncio.sleep(0)

    async def fails() -> None:
        await asyncio.sleep(0.05)
        raise JournalError(f"{tmp_path}")

    with pytest.raises(JournalError, match=str(tmp_path)):
        await run_until(asyncio.Event(), endless(), short(), fails())
    assert ended == ["endless"]
