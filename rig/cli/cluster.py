"""`rig cluster up | down | status`: the embedded cluster by itself.

Its folder is one per user unless `--folder` says otherwise, so that `down` and `status` find it. What runs there is
known by pid and start time: a state file of a cluster that is gone is stale and is cleared away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil

from rig.config.fields import parse_duration
from rig.config.inventory import Embedded, Inventory, Node, Ssh
from rig.config.read import load_inventory
from rig.errors import EXIT_PASS, EXIT_SIGINT, EXIT_UNKNOWN, ClusterError, UsageError
from rig.lab.embedded.cluster import (
    Cluster,
    come_up,
    load_own_inventory,
    log_tail,
    spawn_supervisor,
    start_cluster,
)
from rig.lab.embedded.machine.ask import ask
from rig.lab.embedded.prepare import INERT_COMMANDS, prepare, read_layout
from rig.lab.embedded.reap import SAME_START_S, reap
from rig.lab.embedded.supervise import SupervisorState, state_path
from rig.lab.hosts.pids import NodePids

DOWN_TIMEOUT_S = 10.0


def default_folder() -> Path:
    """Per user, and short: $XDG_RUNTIME_DIR, or the folder for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    return base / f"rig-cluster-{os.getuid()}"


def up(*, inventory: str, for_: str, folder: Path | None, inert: str | None, foreground: bool, as_json: bool) -> int:
    """Start it and say how to reach it. With `foreground` it ends with this command."""
    spec = load_inventory(inventory).embedded
    if spec is None:
        raise UsageError(f"the inventory {inventory} is of real nodes, not of an embedded cluster")
    try:
        limit_s = parse_duration(for_)
    except ValueError as error:
        raise UsageError(f"--for: {error}") from error
    inert_names = frozenset(name.strip() for name in (inert or "").split(",") if name.strip())
    if inert_names - INERT_COMMANDS:
        raise UsageError(f"--inert: expected some of {', '.join(sorted(INERT_COMMANDS))}, not {inert}")
    folder = (folder or default_folder()).absolute()
    _make_room(folder)
    if foreground:
        with contextlib.suppress(KeyboardInterrupt):
            return asyncio.run(_stay(spec, folder, inert_names, limit_s=limit_s, as_json=as_json))
        return EXIT_SIGINT
    own = asyncio.run(_start(spec, folder, inert_names, limit_s))
    _print_up(own, folder, as_json=as_json)
    return EXIT_PASS


def down(*, folder: Path | None) -> int:
    folder = (folder or default_folder()).absolute()
    process = running(folder)
    if process is None:
        print(f"no embedded cluster runs in {folder}")
        if (folder / "cluster.json").exists():
            reap(read_layout(folder))
        return EXIT_PASS
    process.terminate()
    try:
        process.wait(DOWN_TIMEOUT_S)
    except psutil.TimeoutExpired:
        process.kill()
    left = reap(read_layout(folder))
    if left:
        raise ClusterError(f"these processes of the cluster do not end: {left}")
    print(f"ended; its ledger is in {folder / 'ledger'}")
    return EXIT_PASS


def status(*, folder: Path | None, as_json: bool) -> int:
    """Exit 0 when it runs, 3 when it does not."""
    folder = (folder or default_folder()).absolute()
    process = running(folder)
    if process is None:
        print(json.dumps({"running": False, "folder": str(folder)}) if as_json else f"no embedded cluster in {folder}")
        return EXIT_UNKNOWN
    layout = read_layout(folder)
    own = load_own_inventory(folder)
    pids = NodePids(layout)
    state = msgspec.json.decode(state_path(folder).read_bytes(), type=SupervisorState)
    nodes = [
        {
            "node": name,
            "api": node.api,
            "process": node.process.section,
            "main": _main_state(pids, name, Path(node.process.pid_path)),
            "filter_rules": _filter_rules(f"{layout.sockets}/{index}/control"),
        }
        for index, (name, node) in enumerate(own.nodes.items(), start=1)
    ]
    if as_json:
        text = {"running": True, "folder": str(folder), "pid": process.pid, "pace": layout.pace}
        text |= {"behaviour": layout.behaviour, "inventory": str(folder / "inventory.yaml"), "nodes": nodes}
        print(json.dumps(text))
        return EXIT_PASS
    left_s = max(0.0, state.limit_wall - time.time())
    print(f"{layout.behaviour}, pace {layout.pace:g}, in {folder}; ends by itself in {left_s / 60:.0f} min")
    for node in nodes:
        rules = node["filter_rules"]
        print(
            f"  {node['node']}  {node['api']}  {node['process']} {node['main']}"
            + (f"  {rules} filter rules" if rules else "")
        )
    return EXIT_PASS


def running(folder: Path) -> psutil.Process | None:
    """The supervisor of the cluster in `folder`, if it lives; known by pid and start time."""
    try:
        state = msgspec.json.decode(state_path(folder).read_bytes(), type=SupervisorState)
        process = psutil.Process(state.pid)
        alive = abs(process.create_time() - state.start) < SAME_START_S and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, msgspec.MsgspecError, psutil.Error):
        return None
    return process if alive else None


def _make_room(folder: Path) -> None:
    """Refuse a folder in which a cluster runs; clear away one that is gone. Touches nothing that is not a cluster's."""
    process = running(folder)
    if process is not None:
        raise ClusterError(
            f"an embedded cluster runs in {folder} (pid {process.pid})",
            remedy="another --folder, or `rig cluster down` where nobody uses it",
        )
    if (folder / "cluster.json").exists():
        layout = read_layout(folder)
        reap(layout)
        for name in (*layout.nodes, "keys", "ledger"):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in ("cluster.json", "inventory.yaml", "state.json", "samples.jsonl", "cluster.log"):
            (folder / name).unlink(missing_ok=True)
    elif folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty and holds no embedded cluster")


async def _start(spec: Embedded, folder: Path, inert: frozenset[str], limit_s: float) -> Inventory:
    """As a daemon that ends after `limit_s`."""
    layout = prepare(spec, folder, inert=inert)
    process = await spawn_supervisor(layout, lifeline=None, limit_s=limit_s)
    own = load_own_inventory(folder)
    lost = asyncio.Event()
    watcher = asyncio.create_task(process.wait())
    watcher.add_done_callback(lambda _: lost.set())
    try:
        await come_up(own, lost, folder)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), DOWN_TIMEOUT_S)
        raise
    finally:
        watcher.cancel()
    return own


async def _stay(spec: Embedded, folder: Path, inert: frozenset[str], *, limit_s: float, as_json: bool) -> int:
    """Until Ctrl-C, SIGTERM, the end of its time, or its loss."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    code = EXIT_PASS

    def signalled(number: signal.Signals) -> None:
        nonlocal code
        code = 128 + number
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled, number)
    async with start_cluster(spec, folder, inert=inert) as cluster:
        _print_up(cluster.inventory, folder, as_json=as_json)
        await _until(cluster, stop, limit_s)
        if cluster.lost.is_set():
            raise ClusterError(f"the embedded cluster ended: {log_tail(folder)}")
    return code


async def _until(cluster: Cluster, stop: asyncio.Event, limit_s: float) -> None:
    waits = [asyncio.create_task(stop.wait()), asyncio.create_task(cluster.lost.wait())]
    await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _print_up(own: Inventory, folder: Path, *, as_json: bool) -> None:
    inventory = folder / "inventory.yaml"
    if as_json:
        nodes = {name: {"api": node.api, "ssh_port": ssh.port} for name, node, ssh in _reached(own)}
        print(json.dumps({"folder": str(folder), "inventory": str(inventory), "nodes": nodes}), flush=True)
        return
    for name, node, ssh in _reached(own):
        key = folder / "keys" / "client"
        print(f"{name}  {node.api}  ssh -i {key} -p {ssh.port} {ssh.user}@{ssh.host}")
    print(f"inventory  {inventory}")
    sys.stdout.flush()


def _reached(own: Inventory) -> list[tuple[str, Node, Ssh]]:
    """The nodes of the embedded cluster, which have an SSH server each."""
    return [(name, node, node.ssh) for name, node in own.nodes.items() if node.ssh is not None]


def _main_state(pids: NodePids, node: str, pid_path: Path) -> str:
    try:
        pid = pids.outside(node, int(pid_path.read_text()))
        return "not running" if pid is None else psutil.Process(pid).status()
    except (OSError, ValueError, psutil.Error):
        return "not running"


def _filter_rules(control: str) -> int:
    with contextlib.suppress(OSError):
        return sum(line.startswith("rule\t") for line in ask(control, "status").splitlines())
    return 0
