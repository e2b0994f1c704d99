"""runner-kill.sh: exactly the runner of that instance, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.faults.network import free_port
from tests.faults.node import EXO_LIKE, Node, state, until


def runners(main: psutil.Process) -> list[psutil.Process]:
    return [child for child in main.children() if "--multiprocessing-fork" in child.cmdline()]


def runner_on(main: psutil.Process, port: int) -> psutil.Process:
    return next(one for one in runners(main) if any(c.laddr.port == port for c in one.net_connections("tcp")))


@pytest.fixture(params=["lsof", "ss"])
def lister(request: pytest.FixtureRequest, node: Node) -> str:
    """With lsof, or with everything but lsof (hidden in a mount namespace)."""
    if request.param == "ss":
        node.prefix = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null "$(command -v lsof)" && exec "$@"', "sh"]
    return str(request.param)


def test_runner_with_the_ring_port_dies_and_no_other(node: Node, lister: str) -> None:
    ports = [free_port(), free_port(), free_port()]
    main = node.start_exo(3, *ports)
    victim = runner_on(main, ports[1])
    others = [one.pid for one in main.children() if one.pid != victim.pid]
    script = node.script("runner-kill.sh", port=str(ports[1]), others=f"{ports[0]} {ports[2]}")
    events = script.end()
    assert script.status == 0, events
    assert [event.name for event in events] == ["leased", "struck", "healing", "healed", "dropped"]
    assert events[1].fields["pids"].split(":")[0] == str(victim.pid)
    assert events[1].fields["chosen_by"] == "ring port"
    assert state(victim.pid) in "-Z"
    assert all(state(pid) in "RS" for pid in [main.pid, *others])
    assert node.leases == []
    assert lister in ("lsof", "ss")


def test_by_elimination_when_one_runner_is_left(node: Node) -> None:
    ports = [free_port(), free_port()]
    main = node.start_exo(3, *ports)
    known = {runner_on(main, port).pid for port in ports}
    victim = next(one for one in runners(main) if one.pid not in known)
    script = node.script("runner-kill.sh", port="", others=f"{ports[0]} {ports[1]}")
    events = script.end()
    assert script.status == 0, events
    assert events[1].fields["chosen_by"] == "elimination"
    assert state(victim.pid) in "-Z"
    assert all(state(pid) in "RS" for pid in known)


def test_two_candidates_are_left_alone(node: Node) -> None:
    port = free_port()
    main = node.start_exo(3, port)
    script = node.script("runner-kill.sh", port="", others=str(port))
    events = script.end()
    assert script.status == 10
    assert "cannot tell" in events[-1].fields["reason"]
    assert all(state(one.pid) in "RS" for one in runners(main))


def test_the_one_runner_left_may_serve_another_instance(node: Node) -> None:
    """Two instances, neither with a ring socket, one runner: whose it is cannot be told."""
    main = node.start_exo(1)
    script = node.script("runner-kill.sh", port=str(free_port()), others=str(free_port()))
    events = script.end()
    assert script.status == 10
    assert "one may have died" in events[-1].fields["reason"]
    assert all(state(one.pid) in "RS" for one in runners(main))


def test_runner_of_another_main_is_no_candidate(node: Node) -> None:
    main = node.start_exo(0)
    port = free_port()
    listen = f"import socket,time;s=socket.create_server(('127.0.0.1',{port}));time.sleep(30)"
    stranger = subprocess.Popen([sys.executable, "-c", listen, "spawn_main", "--multiprocessing-fork"])
    script = node.script("runner-kill.sh", port=str(port))
    events = script.end()
    assert script.status == 10
    assert events[-1].fields["reason"] == "no runner here"
    assert state(stranger.pid) in "RS"
    assert main.is_running()
    stranger.kill()
    stranger.wait()


def test_kill_that_does_nothing_is_ineffective(node: Node) -> None:
    main = node.start_exo(1)
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "kill").write_text("#!/bin/sh\nexit 0\n")
    (shims / "kill").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = node.script("runner-kill.sh", port="")
    events = script.end(timeout_s=20)
    assert script.status == 11
    assert "ineffective" in [event.name for event in events]
    assert all(state(one.pid) in "RS" for one in runners(main))


def test_main_that_is_stopped_cannot_reap_and_the_defunct_counts_as_gone(node: Node) -> None:
    main = node.start_exo(1)
    os.kill(main.pid, signal.SIGSTOP)
    until(lambda: state(main.pid) == "T", "stopped")
    victim = runners(main)[0].pid
    script = node.script("runner-kill.sh", port="")
    script.end()
    assert script.status == 0
    assert state(victim) == "Z"
    assert str(EXO_LIKE) in " ".join(main.cmdline())
