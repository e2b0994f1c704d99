"""What a fault, or `rig bootstrap`, could leave behind on a node of its own, as values that can be compared; and things
of somebody else there that must outlive both.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from tests.hosts.hosts import Hosts, until

FILTER = {
    "linux": "nft list ruleset; iptables -S 2>/dev/null; tc qdisc show",
    "darwin": "pfctl -q -s info; pfctl -q -s rules; pfctl -q -s References; dnctl list; "
    "for a in $(pfctl -q -s Anchors); do echo $a; pfctl -q -a $a -s rules; pfctl -q -a $a -s dummynet; done",
}
NETWORK = {
    "linux": "ip -o link; ip -o addr; ip -4 route; ip -6 route",
    "darwin": "ifconfig -a",
}
JOBS = {"linux": "ls /etc/systemd/system", "darwin": "launchctl list"}
BOOT = {"linux": "cat /proc/sys/kernel/random/boot_id", "darwin": "sysctl -n kern.bootsessionuuid"}
FOREIGN = {
    "linux": "nft 'table inet theirs { chain c { type filter hook input priority 5; tcp dport 9 drop; }; }'",
    "darwin": "printf 'block drop quick proto udp from any to 192.0.2.9\\n' >/tmp/theirs.conf && "
    "pfctl -q -a com.apple/org.foreign -f /tmp/theirs.conf && pfctl -q -E",
}
NOT_FOREIGN = {
    "linux": "nft delete table inet theirs",
    "darwin": "pfctl -q -a com.apple/org.foreign -F all; rm -f /tmp/theirs.conf; "
    "pfctl -q -s References | awk '$2 == \"pfctl\" { print $3 }' | while read -r t; do pfctl -q -X $t; done",
}
# Kept between faults, and said to be in docs/node-scripts.md.
KEPT = re.compile(r"(scripts-[0-9a-f]+(/.*)?|log(/.*)?|leases|leases/foreign|tree(/.*)?|guard|lock(/.*)?)$")
OURS = re.compile(r"\bps -axww\b|nsenter|chroot |^\S+ sshd: [^/]|sshd-session|guard\.sh|heal\.sh|<defunct>")


@dataclass(frozen=True)
class Standing:
    filter: tuple[str, ...]
    network: tuple[str, ...]
    jobs: tuple[str, ...]
    processes: tuple[str, ...]
    files: tuple[str, ...]

    def differs(self, before: Standing) -> list[str]:
        """What is not as it was: `-` gone, `+` new."""
        found: list[str] = []
        for name in ("filter", "network", "jobs", "processes", "files"):
            was: set[str] = set(getattr(before, name))
            now: set[str] = set(getattr(self, name))
            found += [f"{name}: - {item}" for item in sorted(was - now)]
            found += [f"{name}: + {item}" for item in sorted(now - was)]
        return found


def standing(hosts: Hosts, node: str) -> Standing:
    system = hosts.layout.system
    ask = {name: hosts.inside(node, of[system]).out for name, of in (("f", FILTER), ("n", NETWORK), ("j", JOBS))}
    jobs = [line.split()[-1] for line in ask["j"].splitlines()]
    addresses = re.sub(r" tentative|valid_lft.*|LOWER_UP,?|NO-CARRIER,?| state \S+", "", ask["n"])
    return Standing(
        filter=tuple(re.sub(r"packets \d+ bytes \d+", "", line) for line in ask["f"].splitlines()),
        network=tuple(addresses.splitlines()),
        jobs=tuple(sorted(jobs)),
        processes=_processes(hosts, node),
        files=tuple(_files(hosts, node)),
    )


def _processes(hosts: Hosts, node: str) -> tuple[str, ...]:
    """By command, and whether it is stopped."""
    lines = hosts.inside(node, "ps -axww -o stat,command").out.splitlines()[1:]
    found = [("T " if line.lstrip().startswith("T") else "- ") + line.split(None, 1)[1] for line in lines]
    return tuple(sorted(each for each in found if not OURS.search(each)))


def _files(hosts: Hosts, node: str) -> list[str]:
    """Everything that the node has written above the machine's own files, and names in the rig's and exo's folders."""
    mounted = Path(f"/proc/{hosts.machine(node)}/root{hosts.node_folder(node)}")
    found: list[str] = []
    for path in sorted((mounted / "root" / "upper").rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            info = path.lstat()
            if path.is_dir() and Path("/", path.relative_to(mounted / "root" / "upper")).is_dir():
                continue  # the machine's own folder, in which something was changed
            content = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""
            name = str(path.relative_to(mounted / "root" / "upper"))
            found.append(f"/{name} {info.st_mode:o} {info.st_uid} {content}")
    for folder in (hosts.node_folder(node) / "rig", hosts.node_folder(node) / "exo"):
        names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
        found += [f"{folder.name}/{name}" for name in names if not KEPT.match(name) and not name.startswith(LIVING)]
    return found


LIVING = ("exo_log", "event_log", "exo.pid", ".guard", "lock.")


class Foreign:
    """A rule, a stopped process and a live lease of somebody else on a node."""

    def __init__(self, hosts: Hosts, node: str) -> None:
        self.hosts, self.node, self.system = hosts, node, hosts.layout.system
        assert hosts.inside(node, FOREIGN[self.system]).status == 0
        started = hosts.inside(node, "sleep 3600 </dev/null >/dev/null 2>&1 & kill -STOP $!; echo $!")
        self.pid = int(started.out)
        self.lease = Path(hosts.inventory.nodes[node].rig_dir) / "leases" / "foreign"

    def lend(self) -> str:
        """Once a fault has struck: over a live lease it would be skipped. Returns the lease's text."""
        boot = self.hosts.inside(self.node, BOOT[self.system]).out.strip()
        text = (
            f"version=1\nid=foreign\nrun=theirs\nowner=they@there:1\nkind=freeze\nboot_id={boot}\nstarted=1.000\n"
            f"deadline=99999999.000\nscript_pid={self.pid}\nscript_start=1\nscript=sleep\nphase=struck\n"
            f"pids={self.pid}:1\nend=1\n"
        )
        self.lease.write_text(text)
        return text

    def remove(self) -> None:
        self.lease.unlink(missing_ok=True)
        self.hosts.inside(self.node, f"kill -KILL {self.pid}; {NOT_FOREIGN[self.system]}")


def settled(hosts: Hosts, node: str) -> Standing:
    """The same twice."""
    last = [standing(hosts, node)]

    def same() -> bool:
        last.append(standing(hosts, node))
        return last[-1] == last[-2]

    until(same, f"{node} is at rest")
    return last[-1]


def until_as_before(hosts: Hosts, node: str, before: Standing) -> None:
    """Children are collected and addresses confirmed a moment later."""
    differences = ["never looked"]

    def same() -> bool:
        differences[:] = standing(hosts, node).differs(before)
        return not differences

    try:
        until(same, "as before", within_s=25)
    except AssertionError as error:
        raise AssertionError("\n".join(differences)) from error
