from __future__ import annotations

import time

from rig.clock import RunClock
from rig.nodes.offset import Reading, estimate, measure
from rig.nodes.open import open_nodes
from tests.nodes.servers import SshServer


def test_every_reading_narrows_it() -> None:
    # The node is 100 s ahead of the run. The second reading ticked just before we heard, the first just after we asked.
    wide = Reading(sent_t=1.000, heard_t=1.020, node_t=101.000, resolution_s=0.01)
    late = Reading(sent_t=2.000, heard_t=2.004, node_t=102.000, resolution_s=0.01)
    found = estimate([wide, late])
    assert found.offset_s - found.error_s >= -100.01 - 1e-9
    assert found.offset_s + found.error_s <= -99.996 + 1e-9
    assert found.error_s <= 0.007 + 1e-9
    assert abs(found.round_trip_s - 0.004) < 1e-9
    assert abs(found.to_run(150.0) - 50.0) <= found.error_s
    assert abs(found.to_node(found.to_run(7.0)) - 7.0) < 1e-9


def test_a_clock_that_stepped_leaves_the_best_reading() -> None:
    before = Reading(1.0, 1.1, 51.0, 0.01)
    after = Reading(2.0, 2.01, 99.0, 0.01)
    found = estimate([before, after])
    assert abs(found.offset_s - (-97.0)) <= found.error_s + 1e-9


async def test_against_the_real_clock(server: SshServer) -> None:
    clock = RunClock()
    async with open_nodes(server.inventory()) as nodes:
        found = await measure(nodes["n1"], clock)
        true = clock.now() - time.clock_gettime(time.CLOCK_BOOTTIME)
        assert abs(found.offset_s - true) <= found.error_s + 0.0005
        assert found.error_s < 0.05
