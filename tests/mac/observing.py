"""One partition of a virtual Mac, watched from beside: what it does to whom, and what it leaves behind.

Node-1 is cut off from node-2, and from the controller but for its SSH; node-3 stands by. Nothing here believes the
script: connections are tried, and pf is asked from beside, not over the network.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.hosts.hosts import API_PORT, ECHO_PORT, EXO_PORT, Hosts, Script, until

NODE, PEER, BYSTANDER = "node-1", "node-2", "node-3"
HOLD_S = 20.0  # more than is needed: the script is told to heal once everything was tried
STOCK, BUSY = "stock", "busy"
Scene = Literal["stock", "busy"]
# A Mac on which others use pf too: one that enabled it, rules of theirs before and after the rig's in the order of
# evaluation, which keep states.
FOREIGN = {
    "com.apple/org.before": f"pass out proto tcp from any to any port {ECHO_PORT} keep state\n",
    "com.apple/s.after": (
        f"pass proto tcp from any to any port {API_PORT} keep state\n"
        f"pass quick proto tcp from any to any port {EXO_PORT} keep state\n"
    ),
}
_ids = itertools.count(1)


@dataclass(frozen=True)
class Snapshot:
    """What must be as before once the fault is healed."""

    enabled: bool
    tokens: str
    main: str
    foreign: str
    ours: str


@dataclass
class Observed:
    """`said`: the script's last word. `seen`: what is wrong, as `sort: text`, seen from outside."""

    said: str = "nothing"
    why: str = ""
    seen: list[str] = field(default_factory=list[str])

    def sorts(self) -> set[str]:
        return {text.partition(":")[0] for text in self.seen} | ({"script"} if self.said != "healed" else set())


def pfctl(hosts: Hosts, arguments: str) -> str:
    done = hosts.inside(NODE, f"pfctl {arguments}")
    return done.out + done.err


def lay(hosts: Hosts, scene: Scene) -> None:
    """The node's pf as it is before the fault, whatever was there."""
    pfctl(hosts, "-d")
    pfctl(hosts, "-F states")
    pfctl(hosts, "-q -f /etc/pf.conf")
    if scene == "busy":
        pfctl(hosts, "-E")
        for anchor, rules in FOREIGN.items():
            hosts.inside(NODE, f"cat >/tmp/foreign.conf <<'END'\n{rules}END\npfctl -q -a {anchor} -f /tmp/foreign.conf")


def snapshot(hosts: Hosts) -> Snapshot:
    anchors = pfctl(hosts, "-q -s Anchors").split()
    foreign = {name: pfctl(hosts, f"-q -a {name} -s rules") for name in anchors if name in FOREIGN}
    ours = [
        f"{name}: {rules}"
        for name in anchors
        if name not in {*FOREIGN, "com.apple"} and (rules := pfctl(hosts, f"-q -a {name} -s rules"))
    ]
    return Snapshot(
        enabled="Status: Enabled" in pfctl(hosts, "-q -s info"),
        tokens=pfctl(hosts, "-q -s References"),
        main=pfctl(hosts, "-q -s rules"),
        foreign=str(sorted(foreign.items())),
        ours="".join(ours),
    )


def observe(hosts: Hosts, faults: Path, scene: Scene) -> Observed:
    """Strike with the scripts in `faults`, watch, wait for the heal, look again; pf is laid anew before and after."""
    lay(hosts, scene)
    before = snapshot(hosts)
    found = Observed()
    identity = f"w{next(_ids)}"
    session = hosts.session(NODE)
    echoes = {kind: hosts.connect_echo(NODE, hosts.address(PEER, kind)) for kind in ("ethernet4", "ethernet6")}
    peers = f"{hosts.addresses(PEER)} 10.77.{hosts.layout.subnet}.250"
    script = hosts.script(NODE, "partition.sh", folder=faults, id=identity, hold=f"{HOLD_S}", peers=peers)
    log = hosts.node_folder(NODE) / "rig" / "log" / f"{identity}.log"
    try:
        if _told(script, log, {"struck", "ineffective", "skipped", "unhealed"}) == "struck":
            with ThreadPoolExecutor(12) as pool:
                tried: dict[str, Future[bool]] = {
                    "ssh: the live session of the controller is dead": pool.submit(session.answers, within_s=2.5),
                    "ssh: the controller cannot connect": pool.submit(
                        lambda: hosts.ssh(NODE, "true", timeout_s=4).status == 0
                    ),
                    "bystander: cut off from a node that was not named": pool.submit(
                        hosts.reaches, NODE, hosts.address(BYSTANDER), API_PORT, within_s=2
                    ),
                    "loopback: the node does not reach itself": pool.submit(
                        hosts.reaches, NODE, hosts.address(NODE), API_PORT, within_s=2
                    ),
                }
                open_: dict[str, Future[bool]] = {
                    f"established: a connection lives ({kind})": pool.submit(echo.answers, within_s=1.5)
                    for kind, echo in echoes.items()
                } | {
                    f"open: {start} reaches {end} ({kind})": pool.submit(
                        hosts.reaches, start, hosts.address(end, kind), EXO_PORT if kind[-1] == "6" else API_PORT
                    )
                    for start, end in ((NODE, PEER), (PEER, NODE))
                    for kind in ("ethernet4", "ethernet6", "thunderbolt4")
                }
            found.seen += [text for text, future in tried.items() if not future.result()]
            found.seen += [text for text, future in open_.items() if future.result()]
            heal = f"sed -n 's/^script_pid=//p' {hosts.node_folder(NODE)}/rig/leases/{identity}"
            hosts.inside(NODE, f"kill -s TERM $({heal})")
        _told(script, log, {"dropped", "unhealed", "skipped"})
        found.said, found.why = _last_word(script, log)
        found.seen += _left(hosts, before)
    finally:
        hosts.close_but_servers()
        hosts.inside(NODE, f"rm -f {hosts.node_folder(NODE)}/rig/leases/{identity}")
        lay(hosts, "stock")
    return found


def _left(hosts: Hosts, before: Snapshot) -> list[str]:
    """What is not as it was."""
    after = snapshot(hosts)
    texts: list[str] = []
    if after.enabled != before.enabled:
        texts.append(f"enabled: pf is {'enabled' if after.enabled else 'disabled'} now")
    if after.tokens != before.tokens:
        texts.append("tokens: others hold other tokens now")
    if after.main != before.main:
        texts.append("main: the main ruleset is another one now")
    if after.foreign != before.foreign:
        texts.append("foreign: the rules of others are not as they were")
    if after.ours != before.ours:
        texts.append("left: rules stay behind")
    if not hosts.reaches(NODE, hosts.address(PEER), API_PORT, within_s=2.5):
        texts.append("left: the peer stays cut off")
    return texts


def _told(script: Script, log: Path, names: set[str], *, within_s: float = 45.0) -> str:
    """The first of these events in the node's own log, since the connection may be cut; or how the script ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        events = [line.split("\t")[1] for line in _lines(log)]
        if hit := [event for event in events if event in names]:
            return hit[0]
        if script.ended():
            return "ended"
        time.sleep(0.05)
    return "nothing"


def _last_word(script: Script, log: Path) -> tuple[str, str]:
    lines = _lines(log) or [line for line in script.said.splitlines() if line.startswith("@rig\t")]
    told = [line for line in lines if line.split("\t")[1] in {"healed", "ineffective", "skipped", "unhealed"}]
    worst = [line for line in told if line.split("\t")[1] != "healed"] or told
    if not worst:
        return "nothing", script.said.strip()[-120:]
    words = worst[0].split("\t")
    reason = next((word.removeprefix("reason=") for word in words if word.startswith("reason=")), "")
    return words[1], reason


def _lines(log: Path) -> list[str]:
    try:
        return [line for line in log.read_text().splitlines() if line.startswith("@rig\t")]
    except OSError:
        return []


def settle(hosts: Hosts) -> None:
    """Everything is reachable before the next case."""
    until(lambda: hosts.reaches(NODE, hosts.address(PEER), API_PORT), "the peer answers")
    until(lambda: hosts.ssh(NODE, "true", timeout_s=5).status == 0, "SSH answers")
