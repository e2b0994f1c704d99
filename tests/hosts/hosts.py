"""A running cluster in namespaces, and ways onto its nodes: over SSH as the rig does, and from beside, which no packet
filter of a node can stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rig.config.inventory import Embedded, Inventory
from rig.lab.embedded.cluster import Cluster, start_cluster
from rig.lab.embedded.prepare import ClusterLayout, read_layout
from rig.lab.hosts.pids import NodePids
from tests.hosts.echo import CLIENT, SERVER, Echo
from tests.nodes.servers import ssh_of

API_PORT, EXO_PORT, ECHO_PORT = 52415, 52414, 7777
DARWIN_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))"


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


@dataclass
class Hosts:
    inventory: Inventory
    layout: ClusterLayout
    supervisor_pid: int
    pids: NodePids
    serving: set[str] = field(default_factory=set[str])
    servers: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])
    processes: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def node_folder(self, node: str) -> Path:
        return self.layout.node_folder(node)

    def machine(self, node: str) -> int:
        """The outer pid of a node's first process."""
        pid = self.pids.outside(node, 1)
        assert pid is not None, f"{node} is down"
        return pid

    def address(self, node: str, kind: str = "ethernet4") -> str:
        kinds = ("ethernet4", "ethernet6", "thunderbolt4", "thunderbolt6")
        return self.inventory.nodes[node].addresses[kinds.index(kind)]

    def addresses(self, node: str) -> str:
        return " ".join(self.inventory.nodes[node].addresses)

    # ---- from beside

    def in_network(self, node: str) -> list[str]:
        """A prefix: a command of this machine in the node's network."""
        return ["nsenter", f"--net=/proc/{self.machine(node)}/ns/net"]

    def inside(self, node: str, command: str, *, timeout_s: float = 30.0) -> Done:
        """A shell command on the node, as root, not over its network."""
        return run(self.inside_words(node, command), timeout_s=timeout_s)

    def inside_words(self, node: str, command: str) -> list[str]:
        machine = self.machine(node)
        enter = ["nsenter", "--target", str(machine), "--net", "--pid", "--mount", "--uts"]
        path = DARWIN_PATH if self.layout.system == "darwin" else f"/usr/local/bin:{DARWIN_PATH}"
        tree = self.node_folder(node) / "root" / "tree"
        return [*enter, "env", "-i", f"PATH={path}", "HOME=/root", "chroot", str(tree), "/bin/sh", "-c", command]

    def reaches(self, node: str, address: str, port: int, *, within_s: float = 0.7) -> bool:
        """Whether a new connection from the node comes about."""
        words = [*self.in_network(node), sys.executable, "-c", CONNECT, address, str(port), str(within_s)]
        return run(words).status == 0

    def serve_echo(self, node: str) -> None:
        if node in self.serving:
            return
        self.serving.add(node)
        server = self._python(node, SERVER, str(ECHO_PORT))
        self.processes.remove(server)
        self.servers.append(server)
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"

    def connect_echo(self, node: str, address: str) -> Echo:
        """An established connection from a node to another's echo server."""
        return Echo(self._python(node, CLIENT, address, str(ECHO_PORT)))

    def _python(self, node: str, code: str, *arguments: str) -> subprocess.Popen[str]:
        words = [*self.in_network(node), sys.executable, "-c", code, *arguments]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def controller_python(self, code: str) -> Done:
        """Python where the controller is."""
        return run([sys.executable, "-c", code])

    # ---- over SSH

    def ssh_words(self, node: str, *options: str) -> list[str]:
        """OpenSSH's client, a connection of its own."""
        ssh = ssh_of(self.inventory.nodes[node])
        known = Path(self.layout.folder) / "known_hosts"
        if not known.exists():
            lines = [f"{ssh_of(each).host} {ssh_of(each).host_key}\n" for each in self.inventory.nodes.values()]
            known.write_text("".join(lines))
        assert ssh.key is not None
        fixed = ("-F", "none", "-i", ssh.key, "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes")
        return ["ssh", *fixed, "-o", "ConnectTimeout=3", "-p", str(ssh.port), *options, f"{ssh.user}@{ssh.host}"]

    def ssh(self, node: str, command: str, *, timeout_s: float = 30.0) -> Done:
        return run([*self.ssh_words(node), command], timeout_s=timeout_s)

    def session(self, node: str) -> Echo:
        """A live session that echoes lines: the controller's connection."""
        process = subprocess.Popen(
            [*self.ssh_words(node), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return Echo(process)

    def script(self, node: str, name: str, *, folder: Path, **keys: str) -> Script:
        """A node script over an SSH connection of its own."""
        given = {"id": "f1", "run": "t", "owner": "tests", "rig_dir": self.inventory.nodes[node].rig_dir} | keys
        words = " ".join(shlex.quote(f"{key}={value}") for key, value in given.items())
        command = [*self.ssh_words(node), f"sh {folder}/{name} {words}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return Script(process)

    def close(self) -> None:
        self.close_but_servers()
        end(self.servers)

    def close_but_servers(self) -> None:
        end(self.processes)


def end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    processes.clear()


class Script:
    """A running node script: its events as they come. `said` is everything it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said = ""
        self._events: queue.Queue[tuple[str, dict[str, str]] | None] = queue.Queue()
        self.events: list[tuple[str, dict[str, str]]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # closed at the end of a test
            for line in self._process.stdout:
                self.said += line
                words = line.rstrip("\n").split("\t")
                if words[0] == "@rig":
                    fields = dict(word.split("=", 1) for word in words[3:] if "=" in word)
                    self._events.put((words[1], fields))
        self._events.put(None)

    def wait_for(self, *names: str, within_s: float = 40.0) -> tuple[str, dict[str, str]] | None:
        """The first event of one of these names; None when the script ended without one."""
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                event = self._events.get(timeout=left_s)
            except queue.Empty:
                break
            if event is None:
                self._events.put(None)
                return None
            self.events.append(event)
            if event[0] in names:
                return event
        raise AssertionError(f"no {names} within {within_s} s: {self.said}")

    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self, *, within_s: float = 60.0) -> int:
        """Its exit status, once it has ended."""
        while self.wait_for("", within_s=within_s) is not None:
            pass
        return self._process.wait(within_s)

    def ended_as(self) -> str:
        """The last event that says how it went."""
        told = [name for name, _ in self.events if name in {"healed", "skipped", "ineffective", "unhealed"}]
        return "ineffective" if "ineffective" in told else told[-1] if told else "nothing"

    def fields(self, name: str) -> dict[str, str]:
        none: dict[str, str] = {}
        return next((fields for event, fields in self.events if event == name), none)


def run(words: list[str], *, timeout_s: float = 30.0) -> Done:
    """Status -1 when it did not end in time."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return Done(-1, out, f"no end within {timeout_s} s")
    return Done(done.returncode, done.stdout, done.stderr)


def until(condition: Callable[[], object], what: str, *, within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.05)


@contextmanager
def running(spec: Embedded, folder: Path) -> Generator[Hosts]:
    """The cluster, owned by a thread of this process; everything is gone on leaving."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started: queue.Queue[Cluster | BaseException] = queue.Queue()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def own() -> None:
        try:
            async with start_cluster(spec, folder) as cluster:
                started.put(cluster)
                await ending.wait()
        except BaseException as error:
            started.put(error)
            raise

    thread = threading.Thread(target=lambda: loop.run_until_complete(own()), daemon=True)
    thread.start()
    cluster = started.get(timeout=120)
    if isinstance(cluster, BaseException):
        raise cluster
    layout = read_layout(folder)
    hosts = Hosts(cluster.inventory, layout, cluster.supervisor_pid, NodePids(layout))
    try:
        yield hosts
    finally:
        hosts.close()
        loop.call_soon_threadsafe(ending.set)
        thread.join(60)
        loop.close()


def needs_root(config: pytest.Config, items: list[pytest.Item], fixtures: set[str], *, ci: bool, root: bool) -> None:
    """Tests in namespaces need root: left out loudly elsewhere, an error in CI."""
    needing = [item for item in items if fixtures & set(getattr(item, "fixturenames", ()))]
    if root or not needing:
        return
    if ci:
        raise pytest.UsageError(f"{len(needing)} tests need namespaces: CI must run them as root")
    config.issue_config_time_warning(UserWarning(f"{len(needing)} tests in namespaces are left out: they need root"), 2)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]
