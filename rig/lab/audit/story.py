"""What happens in the run that is written out by hand, told alike by all three accounts:

 1 to 10   requests of every outcome, through node-1
20 to 23   fault 0, a freeze of node-2
30 to 32   fault 1, a crash of node-1, with a request broken and one refused
40         fault 2, the runner of node-2 is killed
50 to 52   fault 3, a partition: node-1 | node-2
60 to 61   node-2 is unwedged
70         the cluster ends
"""

from __future__ import annotations

from rig.journal.records import FaultState, RunEnded, Unwedged
from rig.lab import ledger
from rig.lab.audit.world import END_T, GAP_S, MODEL, TABLE, WALL_OFFSET_S, ZERO, World, request
from rig.lab.embedded import sampler


def agreeing() -> World:
    """Everything above, told alike by all."""
    world = World()
    world.samples.append(sampler.Started(t=ZERO - 6.0, wall_offset_s=WALL_OFFSET_S))
    world.samples += [sampler.Beat(t=ZERO + t, looks=20, gap_max_s=GAP_S) for t in range(-5, 73)]
    world.tree("node-1", 100, -5.0)
    world.tree("node-2", 200, -5.0)
    _requests(world)
    _freeze(world)
    _crash(world)
    _runner_kill(world)
    _partition(world)
    _unwedge(world)
    _end(world)
    world.journal.append(RunEnded(t=69.0, reason="finished"))
    return world


def _requests(world: World) -> None:
    request(world, "r1", 1.0, 1.5, "completed", ledger_end="finished", tokens=5, last_token_t=1.49)
    request(world, "r2", 1.0, 1.6, "completed", ledger_end="finished", tokens=4, streamed=False)
    said = "the server said: the master changed"
    request(
        world, "r3", 2.0, 2.5, "error", ledger_end="error", tokens=2, last_token_t=2.3, cause="message", evidence=said
    )
    request(world, "r4", 2.0, 2.1, "error", ledger_end="error", status=404, cause="status", evidence="HTTP status 404")
    request(world, "r5", 2.0, 8.0, "lost", how="hung", ledger_end="left", tokens=3, last_token_t=3.0)
    request(world, "r6", 2.0, 3.0, "lost", how="truncated", ledger_end="cut", tokens=3, last_token_t=2.5)
    request(world, "r7", 2.0, 3.0, "lost", how="empty", ledger_end="cut")
    request(world, "r8", 2.0, 10.0, "lost", how="overdue", ledger_end="left", tokens=9, last_token_t=9.9)
    request(world, "r9", 1.0, 9.0, "lost", how="hung", ledger_end="left", streamed=False)
    broken = "the connection broke: ConnectionResetError"
    request(world, "r12", 2.0, 3.0, "error", ledger_end="error", streamed=False, cause="broken", evidence=broken)
    request(world, "r13", 2.0, 3.0, "lost", how="truncated", ledger_end="cut", tokens=3, streamed=False)
    request(world, "r14", 2.0, 3.0, "lost", how="empty", ledger_end="cut", streamed=False)
    request(world, "p2", 5.0, 15.0, "lost", how="hung", ledger_end="left")
    request(world, "p1", 3.0, 3.1, "completed", ledger_end="finished", tokens=1, last_token_t=3.09)


def _freeze(world: World) -> None:
    pids = "200:99500 201:99510 202:99550"
    said = {
        "leased": {"node_t": 1019.9, "pids": pids},
        "struck": {"node_t": 1020.0, "pids": pids, "main": "200:99500", "proof_t": "1020.05"},
        "holding": {"node_t": 1020.06},
        "healing": {"node_t": 1023.0, "why": "hold over"},
        "healed": {"node_t": 1023.02, "held": "1"},
    }
    moments: list[tuple[FaultState, float]] = [("leased", 19.905), ("struck", 20.005), ("healed", 23.025)]
    world.fault(0, "freeze", ["node-2"], moments, said, hold_s=3.0)
    for pid in (200, 201, 202):
        world.see(pid, 20.03, "T")
        world.see(pid, 23.05, "S")


def _crash(world: World) -> None:
    pids = "100:99500 101:99510 102:99550"
    said = {
        "leased": {"node_t": 1030.0, "pids": pids},
        "struck": {"node_t": 1030.1, "pids": pids, "main": "100:99500", "proof_t": "1030.14"},
        "holding": {"node_t": 1030.15},
        "healing": {"node_t": 1031.1, "why": "hold over"},
        "healed": {"node_t": 1032.0, "started": "1", "new_main": "300:103120"},
    }
    moments: list[tuple[FaultState, float]] = [("leased", 30.005), ("struck", 30.105), ("healed", 32.005)]
    world.fault(1, "node-crash", ["node-1"], moments, said, hold_s=1.0)
    world.see(100, 30.07, "T")
    for pid in (100, 101, 102):
        world.end(pid, 30.105, -9)
    world.tree("node-1", 300, 31.2)
    broken = "the connection broke: RemoteProtocolError: connection closed inside the body"
    request(world, "r10", 29.8, 30.106, "error", cause="broken", evidence=broken)
    refused = "no connection: ConnectError: refused"
    request(world, "r11", 30.5, 30.501, "error", status=None, cause="unconnected", evidence=refused, reached=False)


def _runner_kill(world: World) -> None:
    said = {
        "leased": {"node_t": 1039.9, "pids": "202:99550"},
        "struck": {"node_t": 1040.0, "pids": "202:99550", "main": "200:99500", "proof_t": "1040.01"},
        "healed": {"node_t": 1040.01},
    }
    moments: list[tuple[FaultState, float]] = [("leased", 39.905), ("struck", 40.005), ("healed", 40.015)]
    world.fault(2, "runner-kill", ["node-2"], moments, said, hold_s=0.0, model=MODEL)
    world.end(202, 40.0, -9)
    world.runner("node-2", 203, 41.0, main=200)


def _partition(world: World) -> None:
    said = {
        "leased": {"node_t": 1049.9},
        "struck": {"node_t": 1050.0, "table": TABLE, "packets": "12", "proof_t": "1051.3"},
        "healing": {"node_t": 1052.0, "why": "hold over"},
        "healed": {"node_t": 1052.1, "packets": "20"},
    }
    moments: list[tuple[FaultState, float]] = [("leased", 49.905), ("struck", 50.005), ("healed", 52.105)]
    world.fault(3, "partition", ["node-1", "node-2"], moments, said, hold_s=2.0)
    rules = [
        f"inet {TABLE} {way}: {family} {end} {address} counter drop"
        for way, end in (("in", "saddr"), ("out", "daddr"))
        for family, address in (("ip", "10.77.0.2"), ("ip6", "fe80::77:2"))
    ]
    world.filter("node-1", 49.99, rules)
    world.filter("node-1", 52.09, [], packets=21)


def _unwedge(world: World) -> None:
    world.journal.append(
        Unwedged(t=61.5, fault=3, node="node-2", started_t=60.0, ended_t=61.5, ok=True, detail="healed")
    )
    for pid in (200, 201, 203):
        world.see(pid, 60.1, "T")
        world.end(pid, 60.2, -9)
    world.tree("node-2", 400, 60.5)


def _end(world: World) -> None:
    for node, first in (("node-1", 300), ("node-2", 400)):
        stopping = ledger.Stopping(t=ZERO + END_T, node=node, process="machine", pid=1)
        world.machine(node).append(stopping)
        for pid in (first, first + 1, first + 2):
            world.end(pid, END_T + 0.02, -9)
