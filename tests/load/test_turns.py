"""Who may begin a request, while others want to as well."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

import pytest

from rig.load.turns import AT_ONCE, Turns


async def test_the_loop_reads_between_the_starts_of_a_crowd() -> None:
    """What arrives while a crowd begins is seen before the crowd is through."""
    turns, loop = Turns(), asyncio.get_running_loop()
    near, far = socket.socketpair()
    near.settimeout(0)
    begun: list[int] = []
    begun_when_read: list[int] = []

    def read() -> None:
        near.recv(100)
        begun_when_read.append(len(begun))

    async def begin(number: int) -> None:
        await turns.take()
        begun.append(number)
        far.send(b"x")

    loop.add_reader(near, read)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(begin(number))
    finally:
        loop.remove_reader(near)
        near.close()
        far.close()
    assert begun == list(range(40)), "first come, first served"
    assert begun_when_read[0] == AT_ONCE
    assert max(later - earlier for earlier, later in pairwise(begun_when_read)) <= 2 * AT_ONCE


async def test_one_alone_begins_at_once() -> None:
    turns = Turns()
    for _ in range(3):
        with pytest.raises(StopIteration):  # without a turn of the loop
            turns.take().send(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_who_gave_up_waiting_takes_nobodys_turn() -> None:
    turns = Turns()
    crowd = [asyncio.ensure_future(turns.take()) for _ in range(AT_ONCE + 6)]
    await asyncio.sleep(0)
    for one in crowd[AT_ONCE : AT_ONCE + 5]:
        one.cancel()
    await asyncio.wait_for(crowd[-1], 5)
    assert [one.cancelled() for one in crowd] == [False] * AT_ONCE + [True] * 5 + [False]
