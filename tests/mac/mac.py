"""The Mac under test: this one, when it is one, otherwise a virtual Mac. Commands run on it as root."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.hosts.hosts import API_PORT, Done, Hosts, run

REPOSITORY = Path(__file__).parent.parent.parent
FAULTS = REPOSITORY / "faults"
ANCHOR = "com.apple/rig"
MAC_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Peer:
    """Somebody on the network who accepts connections, and by which interface he is reached."""

    address: str
    port: int
    interface: str


class Mac(Protocol):
    """`virtual`: it may be treated without care. `folder`: a writable one of the tests' own."""

    virtual: bool
    folder: str
    peer: Peer

    def words(self, command: str) -> list[str]:
        """The command line by which a process here runs a shell command there."""
        ...

    def run(self, command: str, *, timeout_s: float = 30.0) -> Done: ...


@dataclass
class RealMac:
    """This machine, by `sudo -n`. The peer is `RIG_MAC_PEER` (ADDRESS:PORT), otherwise a public web server."""

    folder: str
    peer: Peer
    virtual: bool = False

    def words(self, command: str) -> list[str]:
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        return [*root, "env", "-i", f"PATH={MAC_PATH}", "HOME=/var/root", "/bin/sh", "-c", command]

    def run(self, command: str, *, timeout_s: float = 30.0) -> Done:
        return run(self.words(command), timeout_s=timeout_s)


@dataclass
class VirtualMac:
    hosts: Hosts
    folder: str
    peer: Peer
    virtual: bool = True

    def words(self, command: str) -> list[str]:
        return self.hosts.inside_words("node-1", command)

    def run(self, command: str, *, timeout_s: float = 30.0) -> Done:
        return self.hosts.inside("node-1", command, timeout_s=timeout_s)


def real_mac(folder: Path) -> RealMac:
    if said := os.environ.get("RIG_MAC_PEER"):
        address, _, port = said.rpartition(":")
    else:
        address, port = _public_server(), "443"
    route = run(["/sbin/route", "-n", "get", address])
    interface = next((line.split()[-1] for line in route.out.splitlines() if "interface:" in line), "")
    return RealMac(str(folder), Peer(address, int(port), interface))


def _public_server() -> str:
    looked = run(["/usr/bin/dscacheutil", "-q", "host", "-a", "name", "github.com"])
    found = [line.split()[-1] for line in looked.out.splitlines() if line.startswith("ip_address:")]
    assert found, "name the peer by RIG_MAC_PEER=ADDRESS:PORT"
    return found[0]


def virtual_mac(hosts: Hosts) -> VirtualMac:
    folder = hosts.node_folder("node-1") / "tmp" / "suite"
    folder.mkdir(exist_ok=True)
    return VirtualMac(hosts, str(folder), Peer(hosts.address("node-2"), API_PORT, "en0"))


def is_mac() -> bool:
    return sys.platform == "darwin"


@dataclass
class Tools:
    """What the tests do on the Mac."""

    mac: Mac

    def must(self, command: str, *, timeout_s: float = 30.0) -> str:
        done = self.mac.run(command, timeout_s=timeout_s)
        assert done.status == 0, f"{command}: {done.out}{done.err}"
        return done.out

    def reaches(self, address: str | None = None, port: int | None = None) -> bool:
        """Whether a new connection comes about within about a second."""
        peer = self.mac.peer
        where = f"{address or peer.address} {port or peer.port}"
        return self.mac.run(f"perl -e 'alarm 1; exec @ARGV' nc -z {where}").status == 0

    def load(self, rules: str, anchor: str = ANCHOR) -> Done:
        path = f"{self.mac.folder}/rules.conf"
        self.must(f"printf '%s' {shlex.quote(rules)} >{path}")
        return self.mac.run(f"pfctl -q -a {anchor} -f {path}")

    def enforce(self, rules: str, anchor: str = ANCHOR) -> None:
        done = self.load(rules, anchor)
        assert done.status == 0, done

    def enable(self) -> str:
        """A token."""
        done = self.mac.run("pfctl -E 2>&1")
        assert "Token : " in done.out, done
        return done.out.rpartition("Token : ")[2].split()[0]

    def enabled(self) -> bool:
        return "Status: Enabled" in self.must("pfctl -s info 2>/dev/null")

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.mac.words(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, condition: Callable[[], object], what: str, *, within_s: float = 40.0) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
            time.sleep(0.1)
