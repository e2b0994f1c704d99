from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import pairwise

import pytest

from rig.errors import JournalError
from rig.journal.records import RequestEnded, RequestStarted
from rig.load.prober import MOST_OUTSTANDING, MOST_WAITING, Allowance, Prober
from tests.load.conftest import Recorded
from tests.load.servers import HEAD, SOUND, Client, serving, sound, token, until


def starts(recorded: Recorded) -> list[RequestStarted]:
    return [record for record in recorded.records if isinstance(record, RequestStarted)]


def ends(recorded: Recorded) -> list[RequestEnded]:
    return [record for record in recorded.records if isinstance(record, RequestEnded)]


async def silent(client: Client) -> None:
    await client.send(HEAD)
    await client.gone()


async def test_each_model_is_probed_through_every_node_in_turn(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as one, serving(sound) as two:
        prober = Prober(["small", "large"], {"one": one.url, "two": two.url}, recorded.journal, fast_s=0.05, slow_s=60)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(ends(recorded)) >= 20)
        stop.set()
        await asyncio.wait_for(running, 5)
        asked = one.requests + two.requests
    assert all(request["max_tokens"] == 1 and request["stream"] for request in asked)
    assert {start.source for start in starts(recorded)} == {"probe"}
    assert all(start.max_tokens == 1 and start.id.startswith("p") for start in starts(recorded))
    for model in ("small", "large"):
        entries = [start.entry for start in starts(recorded) if start.model == model]
        assert all(a != b for a, b in pairwise(entries)), "in turn"
    assert all(end.outcome == "completed" for end in ends(recorded))
    assert len(starts(recorded)) == len(ends(recorded))
    times = [start.t for start in starts(recorded) if start.model == "small"]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    assert 0.045 < gaps[len(gaps) // 2] < 1.0


async def test_at_most_one_is_outstanding_per_model_and_node(recorded: Recorded) -> None:
    """One node answers, the other never does: the model goes on being probed through the first alone."""
    stop = asyncio.Event()

    async with serving(sound) as good, serving(silent) as bad:
        entries = {"good": good.url, "bad": bad.url}
        prober = Prober(["m", "n"], entries, recorded.journal, fast_s=0.03, slow_s=60, limit_s=3.0)
        prober.fast = True
        begin = time.monotonic()
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: sum(start.entry == "good" for start in starts(recorded)) >= 20)
        assert time.monotonic() - begin < 2.9
        assert Counter(start.entry for start in starts(recorded))["bad"] == 2, "one for each model"
        assert prober.outstanding >= 2
        stop.set()
        await asyncio.wait_for(running, 10)
    hung = [end for end in ends(recorded) if end.outcome != "completed"]
    assert [(end.outcome, end.how) for end in hung] == [("lost", "hung")] * 2
    assert all(2.99 < end.ended_t - end.started_t < 6 for end in hung), "never given up before the limit"
    assert prober.outstanding == 0


async def test_what_a_frozen_node_does_not_take_is_not_put_upon_the_others(recorded: Recorded) -> None:
    """Wanted are 200 a second, allowed are 20 through each node; one stands still."""
    stop = asyncio.Event()

    async with serving(sound) as good, serving(silent) as bad:
        entries = {"good": good.url, "bad": bad.url}
        prober = Prober(["m", "n"], entries, recorded.journal, fast_s=0.01, slow_s=60, node_per_s=20, limit_s=3.0)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: sum(start.entry == "good" for start in starts(recorded)) >= 12)
        stop.set()
        await asyncio.wait_for(running, 10)
    sent = [start for start in starts(recorded) if start.entry == "good"]
    assert len(sent) <= 2 + 20 * (sent[-1].planned_t - sent[0].planned_t) + 1e-6  # when each was allowed to be sent
    counts = Counter(start.model for start in sent)
    assert abs(counts["m"] - counts["n"]) <= 2, "neither model takes it all"


async def test_where_not_all_can_be_sent_every_model_still_gets_through_every_node(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as one, serving(sound) as two:
        entries = {"one": one.url, "two": two.url}
        prober = Prober(["m", "n", "o"], entries, recorded.journal, fast_s=0.01, slow_s=60, node_per_s=20)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(starts(recorded)) >= 36)
        stop.set()
        await asyncio.wait_for(running, 10)
    counts = Counter((start.model, start.entry) for start in starts(recorded)[:36])
    assert len(counts) == 6
    assert min(counts.values()) >= 3


def test_an_allowance_is_an_average_and_holds_back_no_more_than_two() -> None:
    allowance = Allowance(4.0)
    assert [allowance.take(100.0) for _ in range(3)] == [True, True, False]
    assert sum(allowance.take(100.0 + step / 100) for step in range(1, 1001)) == 40
    assert [allowance.take(1000.0) for _ in range(3)] == [True, True, False]


async def test_nothing_is_sent_while_every_node_has_one_outstanding(recorded: Recorded) -> None:
    stop = asyncio.Event()

    async def slow(client: Client) -> None:
        await go_on.wait()
        await client.send(SOUND)

    go_on = asyncio.Event()
    async with serving(slow) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.01, slow_s=60, limit_s=20)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await asyncio.sleep(0.2)
        assert len(starts(recorded)) == 1
        go_on.set()
        await until(lambda: len(ends(recorded)) >= 3)
        stop.set()
        await running


async def test_one_that_hangs_holds_the_next_back_for_a_while_each_time_twice_as_long(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(silent) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.02, slow_s=60, limit_s=4.0, patience_s=0.1)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(starts(recorded)) == MOST_WAITING)
        sent = [start.t for start in starts(recorded)]
        await asyncio.sleep(0.3)
        assert len(starts(recorded)) == MOST_WAITING, "and no more"
        stop.set()
        await running
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert all(gap >= 0.1 * 2**number for number, gap in enumerate(gaps)), gaps
    assert sent[-1] - sent[0] < 3.5, "before the first is given up"


async def test_what_was_sent_before_a_heal_does_not_hold_back_what_comes_after(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(silent) as one:
        prober = Prober(["m", "n"], {"one": one.url}, recorded.journal, fast_s=60, slow_s=60, limit_s=4.0)
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(starts(recorded)) == 2)
        prober.renew(["n"])
        await until(lambda: len(starts(recorded)) == 3)
        prober.renew()
        await until(lambda: len(starts(recorded)) == 5)
        assert Counter(start.model for start in starts(recorded)) == {"m": 2, "n": 3}
        for _ in range(MOST_OUTSTANDING):
            prober.renew()
            await asyncio.sleep(0.02)
        assert prober.outstanding == 2 * MOST_OUTSTANDING, "and no more"
        stop.set()
        await running
    assert prober.outstanding == 0


async def test_after_a_heal_waits_are_counted_anew(recorded: Recorded) -> None:
    """As many wait as may when the fault is healed: what follows is as close together as in the beginning."""
    stop = asyncio.Event()
    async with serving(silent) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.02, slow_s=60, limit_s=6.0, patience_s=0.1)
        prober.fast = True
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(starts(recorded)) == MOST_WAITING)
        healed_t = recorded.journal.now()
        prober.renew()
        await until(lambda: len(starts(recorded)) >= MOST_WAITING + 3)
        sent = [start.t for start in starts(recorded)][MOST_WAITING:]
        assert not ends(recorded), "none of those before had to end"
        stop.set()
        await running
    gaps = [later - earlier for earlier, later in pairwise([healed_t, *sent[:3]])]
    assert gaps[1] >= 0.1
    assert gaps[2] >= 0.2


async def test_the_end_of_an_old_probe_lets_no_second_new_one_through(recorded: Recorded) -> None:
    stop, first_may_end = asyncio.Event(), asyncio.Event()
    seen = 0

    async def first_then_silent(client: Client) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            await silent(client)
        else:
            await first_may_end.wait()
            await client.send(SOUND)

    async with serving(first_then_silent) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.02, slow_s=60, limit_s=2.0)
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: seen == 1)
        prober.renew()
        await until(lambda: seen == 2)
        prober.fast = True
        first_may_end.set()
        await until(lambda: len(ends(recorded)) == 1)
        await asyncio.sleep(0.1)
        assert len(starts(recorded)) == 2, "the second is still outstanding"
        stop.set()
        await running


async def test_switching_to_fast_probes_at_once_and_back_is_slow(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.05, slow_s=60)
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: len(ends(recorded)) == 1)
        await asyncio.sleep(0.2)
        assert len(starts(recorded)) == 1, "slow: one at the start, the next after a minute"
        switched_t = recorded.journal.now()
        prober.fast = True
        await until(lambda: len(starts(recorded)) >= 2)
        assert starts(recorded)[1].t - switched_t < 1.0
        await until(lambda: len(starts(recorded)) >= 5)
        prober.fast = False
        await asyncio.sleep(0.1)
        count = len(starts(recorded))
        await asyncio.sleep(0.3)
        assert len(starts(recorded)) == count
        stop.set()
        await asyncio.wait_for(running, 1)


async def test_stop_awaits_what_is_outstanding(recorded: Recorded) -> None:
    stop = asyncio.Event()

    async def slow(client: Client) -> None:
        await client.send(HEAD + token())
        await go_on.wait()

    go_on = asyncio.Event()
    async with serving(slow) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, limit_s=20)
        running = asyncio.create_task(prober.run(stop))
        await until(lambda: prober.outstanding == 1)
        stop.set()
        _, pending = await asyncio.wait({running}, timeout=0.1)
        assert pending
        go_on.set()
        await asyncio.wait_for(running, 5)
    assert len(ends(recorded)) == 1


async def test_a_journal_that_fails_ends_the_prober(recorded: Recorded) -> None:
    async with serving(sound) as one:
        prober = Prober(["m"], {"one": one.url}, recorded.journal, fast_s=0.02, slow_s=0.02)
        running = asyncio.create_task(prober.run(asyncio.Event()))
        await until(lambda: len(ends(recorded)) >= 2)
        recorded.journal.close()
        with pytest.raises(JournalError):
            await asyncio.wait_for(running, 5)
