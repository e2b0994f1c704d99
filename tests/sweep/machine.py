"""One node of the sweep: its SSH, guard, exo and commands, which belong to a boot that can be ended and begun again.

`shutdown` is always the machine's own, first on the PATH of everything that runs on the node: it ends this boot, as by
a power failure, and begins the next. `tc` is one that can delay packets whatever the kernel has.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rig.lab.embedded.machine.shims import SHIM
from rig.lab.hosts.tc import kernel_delays
from rig.targets.exo.fields import ExoProcess
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer

FAULTS = Path(__file__).parents[2] / "faults"
SSH_SERVER = Path(__file__).parents[1] / "nodes" / "sshserver.py"
INNER_PORT = 2222
EXO_AGE_S, EXO_LIFE_S = 40.0, 400
DOWN_S = 1.5  # from `shutdown` to the end of the boot: so long is every command of the node still there


@dataclass
class Machine:
    """`namespace`: of its network. `folder` holds all of it."""

    name: str
    folder: Path
    namespace: str
    guarded: bool = True
    boots: int = 0
    session: dict[str, str] = field(default_factory=dict[str, str])  # what SSH adds to the environment of its sessions
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def __post_init__(self) -> None:
        self.marker = secrets.token_hex(6)
        self.exo = FakeExo(self.folder / f"exo-{self.name}", runners=1, master=self.name == "n1", life_s=EXO_LIFE_S)
        self.keys = SshServer(self.folder / self.name)
        self.rig_dir = self.folder / self.name / "rig"
        self.going_down = threading.Event()
        self._control = tempfile.mkdtemp(prefix="rig-q-")  # the path of a socket is short
        self._bin = self.folder / f"bin-{self.name}"
        self._asked = self.folder / f"shutdown-{self.name}"
        self._furnish()
        self._waiting = threading.Thread(target=self._restarts, daemon=True)
        self._waiting.start()

    def _furnish(self) -> None:
        os.mkfifo(self._asked)
        commands = {"shutdown": f"#!/bin/sh\necho restart >{shlex.quote(str(self._asked))}\n"}
        if not kernel_delays():
            commands["tc"] = SHIM.format(
                quoted=shlex.quote(sys.executable), control=f"{self._control}/tc", name="tc", timeout_s=20
            )
        self._bin.mkdir()
        for name, text in commands.items():
            (self._bin / name).write_text(text)
            (self._bin / name).chmod(0o755)

    # ---- boots

    def boot(self) -> None:
        """What runs when the machine is on, but for exo: SSH, the guard, whatever delays packets."""
        found = shutil.which("shutdown", path=self.environment["PATH"])
        assert found == str(self._bin / "shutdown"), "a fault would restart the machine that this runs on"
        self.boots += 1
        self._serve_ssh()
        if (self._bin / "tc").exists():
            self._serve([sys.executable, "-m", "tests.sweep.queues", f"{self._control}/tc"], Path(__file__).parents[2])
        if self.guarded:
            command = ["sh", str(FAULTS / "guard.sh"), f"rig_dir={self.rig_dir}"]
            self.processes.append(
                subprocess.Popen([*self.enter, *command], env=self.environment, start_new_session=True)
            )

    def _serve_ssh(self) -> None:
        command = [sys.executable, str(SSH_SERVER), str(self.keys.folder), str(INNER_PORT)]
        self.sshd = self._serve(command, self.keys.folder, **self.session)

    def _serve(self, command: list[str], folder: Path, **more: str) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            [*self.enter, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=self.environment | more,
        )
        assert server.stdout is not None
        assert server.stdout.readline().startswith(b"ready"), f"did not start: {command}"
        self.processes.append(server)
        return server

    def restart_sshd(self) -> None:
        self.sshd.kill()
        self.sshd.wait()
        self.processes.remove(self.sshd)
        self._serve_ssh()

    @contextmanager
    def as_darwin(self, zone: str) -> Generator[None]:
        """The scripts take it for a Mac, where `ps` tells who a process is; `zone`: the TZ of SSH sessions."""
        shims = {"uname": "echo Darwin", "sysctl": "exit 1"}
        for name, text in shims.items():
            (self._bin / name).write_text(f"#!/bin/sh\n{text}\n")
            (self._bin / name).chmod(0o755)
        self.session["TZ"] = zone
        self.restart_sshd()
        try:
            yield
        finally:
            for name in shims:
                (self._bin / name).unlink()
            del self.session["TZ"]
            self.restart_sshd()

    def power_off(self) -> None:
        """Every process of the node at once, and what the kernel held for it; files stay."""
        while mine := [one for one in self.mine() if _lives(one)]:  # again, for what was born meanwhile
            for process in mine:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            for process in self.processes:
                process.kill()
                process.wait()
        self.processes.clear()
        self.exo.kill()
        for line in self.command("nft", "list", "tables").splitlines():
            if line.split()[2].startswith(("rig_", "netem-")):
                self.command("nft", "delete", *line.split())
        if self._kernel_queue():
            self.command("tc", "qdisc", "del", "dev", self.device, "root")
        self.command("ip", "link", "set", self.device, "up")

    def _kernel_queue(self) -> bool:
        return "qdisc prio" in self.command("tc", "qdisc", "show", "dev", self.device)

    def _restarts(self) -> None:
        """Waits for `shutdown` of the node, for as long as this process lives or until `down`."""
        with os.fdopen(os.open(self._asked, os.O_RDWR)) as asked:
            for line in asked:
                if line.strip() != "restart":
                    return
                self.going_down.set()
                time.sleep(DOWN_S)
                self.power_off()
                self.boot()
                self.going_down.clear()

    def down(self) -> None:
        with self._asked.open("w") as file:
            file.write("for good\n")
        self._waiting.join(60)
        self.power_off()
        shutil.rmtree(self._control, ignore_errors=True)

    # ---- what is there

    @property
    def enter(self) -> list[str]:
        return ["ip", "netns", "exec", self.namespace]

    @property
    def device(self) -> str:
        return "vnode" if self.name == "n1" else "vpeer"

    def command(self, *words: str) -> str:
        """What a command of this machine says in the node's network; the node's own commands are not asked."""
        done = subprocess.run(
            [*self.enter, *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        """`RIG_SWEEP` is how the processes of this node are found; every boot has an id of its own."""
        return {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "RIG_SWEEP": self.marker,
            "RIG_EMULATED_BOOT": f"{self.marker}-{self.boots}",
        }

    def mine(self) -> list[psutil.Process]:
        """Every process of this node, but for an exo that the harness started."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("RIG_SWEEP") == self.marker:
                    found.append(process)
        return found

    def kill_healers(self) -> int:
        """SIGKILL to every `heal.sh` at work here. How many there were."""
        killed = 0
        for process in self.mine():
            with contextlib.suppress(psutil.Error):
                if any(word.endswith("/heal.sh") for word in process.cmdline()):
                    process.send_signal(signal.SIGKILL)
                    killed += 1
        return killed

    # ---- exo, leases, logs

    def exo_process(self, **changes: object) -> ExoProcess:
        return self.exo.process(
            stop=f"kill -TERM $(cat '{self.exo.home}/exo.pid') $(pgrep -P $(cat '{self.exo.home}/exo.pid'))",
            **changes,
        )

    def fresh_exo(self) -> None:
        """exo's stand-in ends by itself after a while, and makes no new runner; a case gets one young and whole."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            main = psutil.Process(int((self.exo.home / "exo.pid").read_text()))
            young = time.time() - main.create_time() < EXO_AGE_S
            whole = psutil.STATUS_ZOMBIE not in [one.status() for one in [main, *main.children()]]
            if young and main.is_running() and whole:
                self.exo.wait()
                return
        self.exo.kill()
        self.exo.start()

    def exo_tree(self) -> list[psutil.Process]:
        """Main, and its children that live; nothing where exo does not run."""
        with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):
            main = psutil.Process(int((self.exo.home / "exo.pid").read_text()))
            return [one for one in [main, *main.children(recursive=True)] if _lives(one)]
        return []

    @property
    def leases(self) -> Path:
        return self.rig_dir / "leases"

    def logs(self) -> set[str]:
        """The faults that ever were here."""
        folder = self.rig_dir / "log"
        return {name.removesuffix(".log") for name in os.listdir(folder)} if folder.exists() else set()

    def ours(self) -> list[str]:
        """The leases of faults that the sweep struck."""
        if not self.leases.exists():
            return []
        return [name for name in os.listdir(self.leases) if not name.startswith(".") and name != "foreign"]


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
