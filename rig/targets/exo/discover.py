"""What a host tells of itself on first contact, for an inventory: addresses, exo's process, home, port, how it starts.

Reads only. The parsers are pure; what cannot be found out is said in `unknown` instead of guessed.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rig.nodes.operations import ShellNode
from rig.nodes.scripts import q
from rig.targets.exo.fields import API_PORT, ExoProcess

NOT_BETWEEN_NODES = re.compile(r"^(lo\d*|awdl\d+|llw\d+|gif\d+|stf\d+|docker\d+|veth.*|br-.*|virbr\d+)$")

_FACTS = 'uname -s; hostname; id -un; printf \'%s\\n%s\\n\' "$HOME" "$EXO_HOME"'
_ADDRESSES = "PATH=$PATH:/usr/sbin:/sbin; ip -o addr 2>/dev/null || ifconfig -a"


@dataclass(frozen=True)
class FoundAddress:
    interface: str
    address: str  # link-local IPv6 with %interface


@dataclass
class Discovered:
    """One host. `unknown`: what could not be found out, as sentences; `None` stands in its place."""

    os: str
    hostname: str
    user: str
    addresses: list[FoundAddress]
    home: str
    pid: int | None = None
    command: str | None = None
    match: str | None = None  # only when the usual one does not fit
    port: int | None = None
    start: str | None = None
    stop: str | None = None
    hold: str | None = None
    release: str | None = None
    started_by: str = ""
    notes: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])


async def discover(conn: ShellNode) -> Discovered:
    """Asks one host. Raises TransportError, CommandTimeout."""
    system, hostname, user, home, exo_home = [*(await conn.run(_FACTS)).stdout.splitlines(), *[""] * 5][:5]
    addresses = parse_addresses((await conn.run(_ADDRESSES, check=False)).stdout)
    usual = exo_home or (f"{home}/.exo" if system == "Darwin" else f"{home}/.cache/exo")
    found = Discovered(system, hostname, user, addresses, home=usual)
    if not addresses:
        found.unknown.append("no addresses were found by `ip -o addr` or `ifconfig -a`")
    table = parse_processes((await conn.run("ps -axww -o pid= -o ppid= -o user= -o command=", check=False)).stdout)
    mains = await _main_by_pidfile(conn, usual, table, found) or exo_mains(table)
    if not mains:
        found.unknown.append("exo does not run there now: its home, port and start command are guesses or missing")
        return found
    if len(mains) > 1:
        found.unknown.append(f"several processes look like exo: {', '.join(str(one.pid) for one in mains)}")
    main = mains[0]
    found.pid, found.command = main.pid, main.command
    found.home = await _home(conn, main, usual, found)
    found.port = await _port(conn, main.pid, found)
    await _start(conn, main, table, found)
    return found


@dataclass(frozen=True)
class TableRow:
    pid: int
    ppid: int
    user: str
    command: str


def parse_processes(text: str) -> list[TableRow]:
    """`ps -axww -o pid= -o ppid= -o user= -o command=` → rows."""
    rows: list[TableRow] = []
    for line in text.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[0].isdigit() and parts[1].isdigit():
            rows.append(TableRow(int(parts[0]), int(parts[1]), parts[2], parts[3]))
    return rows


def exo_mains(table: Sequence[TableRow]) -> list[TableRow]:
    """Processes that look like exo's main one; wrappers (`uv run exo`, shells) and runners are none."""
    pattern = re.compile(ExoProcess(home="/x").match)
    found = [
        row
        for row in table
        if pattern.search(row.command) and not re.match(r"\S*(uv|sh|bash|zsh|ssh|sudo) ", row.command)
    ]
    pids = {row.pid for row in found}
    return [row for row in found if row.ppid not in pids and "multiprocessing" not in row.command]


async def _main_by_pidfile(conn: ShellNode, home: str, table: Sequence[TableRow], found: Discovered) -> list[TableRow]:
    """The process whose pid is in the usual home, also when it is called otherwise than exo usually is."""
    pid = (await conn.run(f"cat {q(home + '/exo.pid')}", check=False)).stdout.strip()
    rows = [row for row in table if str(row.pid) == pid]
    for row in rows:
        if not re.search(ExoProcess(home="/x").match, row.command):
            found.match = match_of(row.command)
    return rows


def match_of(command: str) -> str:
    """An extended regular expression for this command line, up to its first long option: those may change."""
    words = list(itertools.takewhile(lambda word: not word.startswith("--"), command.split()))
    return re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", " ".join(words or [command]))


def parse_addresses(text: str) -> list[FoundAddress]:
    """`ip -o addr` or `ifconfig -a` → addresses that peers may use, in order; not loopback, not Apple's radio links."""
    found: list[FoundAddress] = []
    interface = ""
    for line in text.splitlines():
        match = re.match(r"\d+:\s+(\S+?)(?:@\S+)?\s+inet6?\s", line) or re.match(r"(\w[\w.-]*):\s", line)
        interface = match[1] if match else interface
        for address in re.findall(r"\binet6?\s+(?:addr:)?\s*([0-9a-fA-F.:]+)", line):
            if (usable := _usable(address, interface)) is not None and usable not in found:
                found.append(usable)
    return found


def _usable(text: str, interface: str) -> FoundAddress | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if address.is_loopback or address.is_multicast or address.is_unspecified or NOT_BETWEEN_NODES.match(interface):
        return None
    zone = f"%{interface}" if address.version == 6 and address.is_link_local else ""
    return FoundAddress(interface, f"{address}{zone}")


def parse_listening(text: str) -> list[int]:
    """Ports of `lsof … -Fn` lines (`n*:52415`) or of `ss -Hltn` lines, in order."""
    ports: list[int] = []
    for line in text.splitlines():
        match = re.match(r"n\S*:(\d+)$", line) or re.match(r"LISTEN\s+\d+\s+\d+\s+\S*:(\d+)\s", line)
        if match and int(match[1]) not in ports:
            ports.append(int(match[1]))
    return ports


def parse_launchd(text: str, pid: int) -> str | None:
    """The label of the job with this pid, from `launchctl print system` (or `launchctl list`)."""
    match = re.search(rf"^\s*{pid}\s+\S+\s+(\S+)\s*$", text, re.MULTILINE)
    return match[1] if match else None


def parse_cgroup(text: str) -> str | None:
    """The systemd service of a process, from /proc/PID/cgroup."""
    match = re.search(r"/([A-Za-z0-9@_.\\-]+\.service)\s*$", text, re.MULTILINE)
    return match[1] if match and not match[1].startswith(("user@", "ssh")) else None


async def _home(conn: ShellNode, main: TableRow, usual: str, found: Discovered) -> str:
    """The folder whose exo.pid holds the main process's pid."""
    tries = [usual]
    said = await conn.run(f"tr '\\0' '\\n' </proc/{main.pid}/environ 2>/dev/null | grep '^EXO_HOME='", check=False)
    if said.stdout.startswith("EXO_HOME=/"):
        tries.insert(0, said.stdout.strip().removeprefix("EXO_HOME="))
    if re.fullmatch(r"[A-Za-z0-9._-]+", main.user) and main.user != found.user:
        theirs = (await conn.run(f"echo ~{main.user}", check=False)).stdout.strip()
        tries += [f"{theirs}/.exo", f"{theirs}/.cache/exo"] if theirs.startswith("/") else []
    for home in dict.fromkeys(tries):
        pid = (await conn.run(f"cat {q(home + '/exo.pid')}", check=False)).stdout.strip()
        if pid == str(main.pid):
            return home
    found.unknown.append(f"no exo.pid holds {main.pid} in {', '.join(dict.fromkeys(tries))}: `home` is a guess")
    return tries[0]


async def _port(conn: ShellNode, pid: int, found: Discovered) -> int | None:
    command = (
        "PATH=$PATH:/usr/sbin:/sbin; "
        f"lsof -nP -a -p {pid} -iTCP -sTCP:LISTEN -Fn 2>/dev/null || ss -Hltnp | grep 'pid={pid},'"
    )
    ports = parse_listening((await conn.run(command, check=False)).stdout)
    if API_PORT in ports or len(ports) == 1:
        return API_PORT if API_PORT in ports else ports[0]
    text = f"it listens on {', '.join(map(str, ports))}" if ports else "what it listens on cannot be seen"
    found.unknown.append(f"the API's port: {text}; {API_PORT} is exo's default")
    return None


async def _start(conn: ShellNode, main: TableRow, table: Sequence[TableRow], found: Discovered) -> None:
    """launchd job, systemd unit, or `uv run exo` in a checkout; else unknown."""
    if found.os == "Darwin":
        jobs = (await conn.run("/bin/launchctl print system; /bin/launchctl list", check=False)).stdout
        parents = {row.pid: row.ppid for row in table}
        for pid in (main.pid, parents.get(main.pid, 0)):
            if pid > 1 and (label := parse_launchd(jobs, pid)) is not None:
                await _launchd(conn, label, found)
                return
    else:
        unit = parse_cgroup((await conn.run(f"cat /proc/{main.pid}/cgroup", check=False)).stdout)
        if unit is not None:
            sudo = "" if found.user == "root" else "sudo -n "
            found.start, found.stop = f"{sudo}systemctl start {unit}", f"{sudo}systemctl stop {unit}"
            found.started_by = f"systemd unit {unit}"
            found.notes.append(f"if {unit} has Restart=, it restarts exo at once: say `hold` and `release`")
            return
    parent = next((row for row in table if row.pid == main.ppid), None)
    if parent is not None and re.search(r"(^|/)uv run ", parent.command):
        found.started_by = f"`{parent.command}` (by hand or a script)"
    found.unknown.append("how exo is started: no launchd job or systemd unit owns it")


async def _launchd(conn: ShellNode, label: str, found: Discovered) -> None:
    said = (await conn.run(f"/bin/launchctl print system/{q(label)}", check=False)).stdout
    found.started_by = f"launchd job {label}"
    path = re.search(r"^\s*path = (/\S.*\.plist)\s*$", said, re.MULTILINE)
    if path is None:
        found.unknown.append(f"the plist of {label}, so how to bootstrap it again")
        return
    bootstrap = f"sudo -n /bin/launchctl bootstrap system {q(path[1])}"
    found.hold = f"sudo -n /bin/launchctl bootout system/{q(label)}"
    found.stop, found.release = found.hold, bootstrap
    found.start = f"{bootstrap} 2>/dev/null; sudo -n /bin/launchctl kickstart system/{q(label)}"
