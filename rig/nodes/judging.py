"""What the facts of a node mean for a run: ok, warn or fail, with the remedy. Pure functions of the facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping

from rig.config.inventory import Node
from rig.faults.plan.registry import kinds_of, needing
from rig.nodes.doctor import Finding, Level
from rig.nodes.facts import Facts

GUARD_STALE_S = 15.0
WALL_WARN_S = 2.0
MLX_RIGHT = str(64**3)

Judge = Callable[[str, Node, Facts, frozenset[str]], Iterator[Finding]]


def judge(name: str, node: Node, facts: Facts, kinds: Collection[str]) -> list[Finding]:
    """All checks of one node. `kinds`: the faults to be struck; what only others need is no failure."""
    wanted = frozenset(kinds)
    return [finding for one in _JUDGES for finding in one(name, node, facts, wanted)]


def judge_wall(name: str, facts: Facts, wall: float) -> list[Finding]:
    """`wall`: the controller's Unix time when the facts were asked for."""
    if "wall" not in facts:
        return []
    apart_s = float(facts["wall"]) - wall
    if abs(apart_s) <= WALL_WARN_S:
        return [Finding(name, "wall clock", "ok", f"within {WALL_WARN_S:g} s of this machine's")]
    text = f"{apart_s:+.0f} s from this machine's: its log lines will be read as of another time"
    return [Finding(name, "wall clock", "warn", text, "sudo sntp -sS time.apple.com, or start its time service")]


def judge_versions(all_facts: Mapping[str, Facts]) -> list[Finding]:
    """The target must be the same everywhere."""
    found: list[Finding] = []
    for key, what in (("exo_version", "version"), ("exo_revision", "revision")):
        told = {name: facts[key] for name, facts in all_facts.items() if key in facts}
        values = set(told.values())
        if len(values) > 1:
            each = ", ".join(f"{name} {value}" for name, value in told.items())
            text = f"nodes differ in exo's {what}: {each}"
            found += [Finding(name, f"exo {what}", "fail", text, "bring all nodes to one") for name in told]
        elif told:
            found += [Finding(name, f"exo {what}", "ok", f"{value} on every node") for name, value in told.items()]
    return found


def judge_paths(name: str, reached: Mapping[str, bool], resolved: Mapping[str, bool]) -> list[Finding]:
    """Whether the other nodes can be reached from this one."""
    found: list[Finding] = []
    if closed := [what for what, yes in reached.items() if not yes]:
        level: Level = "fail" if len(closed) == len(reached) else "warn"
        remedy = "check the addresses in the inventory, cables and firewall"
        found.append(Finding(name, "peers", level, f"cannot be reached from here: {', '.join(closed)}", remedy))
    elif reached:
        found.append(Finding(name, "peers", "ok", f"{len(reached)} addresses of other nodes answer"))
    if unknown := [host for host, yes in resolved.items() if not yes]:
        found.append(Finding(name, "names", "warn", f"not resolved here: {', '.join(unknown)}", "use addresses"))
    return found


def judge_instances(name: str, instances: Mapping[str, str], deployed: Collection[str]) -> list[Finding]:
    """`instances`: id → model, as the node tells of all nodes. One that no deployment asks for is somebody's."""
    foreign = [f"{model} ({identity[:8]})" for identity, model in instances.items() if model not in deployed]
    if not foreign:
        text = f"{len(instances)}, each of a deployment" if instances else "none"
        return [Finding(name, "instances", "ok", text)]
    text = f"nobody deployed {', '.join(foreign)}: they hold memory, and faults hit them too"
    return [Finding(name, "instances", "warn", text, "delete them, if they are not meant to be there")]


def _home(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    if facts.get("home") == "0":
        yield Finding(
            name, "home", "fail", f"{node.process.home} is not there", f"correct `{node.process.section}.home`"
        )
    elif facts.get("home_writable") == "0":
        level: Level = "fail" if needing(kinds, "disk") else "warn"
        yield Finding(
            name, "home", level, f"{node.process.home} cannot be written by {facts.get('user')}", "log in as its user"
        )
    elif "home" in facts:
        yield Finding(name, "home", "ok", node.process.home)


def _foreign(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del kinds
    others = [pid for pid in facts.get("exo_processes", "").split() if pid != facts.get("main")]
    if others:
        process = node.process
        text = f"more processes match `{process.section}.match` than the one of {process.pid_path}: {', '.join(others)}"
        yield Finding(name, "foreign exo", "warn", text, "make `exo.match` fit one only, or end what nobody needs")


def _sudo(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    """Rights exactly as needed: what is missing is found where it is used; here, what is too much."""
    del kinds
    if facts.get("user") == "root":
        yield Finding(name, "sudo", "warn", "the rig logs in as root", "use a user of its own and `rig bootstrap`")
        return
    rules = facts.get("sudo_rules", "")
    if re.search(r"NOPASSWD:(SETENV:)? *ALL\b", rules):
        text = f"{facts.get('user')} may do everything as root without a password"
        yield Finding(name, "sudo", "warn", text, "rig bootstrap installs the one helper that is needed")
    elif rules:
        yield Finding(name, "sudo", "ok", f"{rules.count('NOPASSWD')} narrow rules")
    elif node.sudo:
        text = "no command is allowed without a password"
        yield Finding(name, "sudo", "warn", text, "rig bootstrap")


def _filter(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node
    level: Level = "fail" if needing(kinds, "filter") else "warn"
    if "pf_error" in facts or "nft_error" in facts:
        text = facts.get("pf_error") or facts["nft_error"]
        yield Finding(name, "packet filter", level, text[:200], "rig bootstrap")
    elif facts.get("pf_anchor") == "0":
        text = 'the main ruleset does not reference `anchor "com.apple/*"`: rules in com.apple/rig_… would do nothing'
        yield Finding(name, "pf anchor", level, text, 'add `anchor "com.apple/*"` to /etc/pf.conf again')
    elif facts.get("pf_anchor") == "1":
        yield Finding(name, "pf anchor", "ok", "com.apple/rig_… is reached through the stock wildcard")
    if needing(kinds, "delay") and "shaping" in facts and not {"netem", "dnctl"} & set(facts["shaping"].split()):
        yield Finding(name, "net-delay", "warn", "no netem in this kernel: it will be skipped", "modprobe sch_netem")
    if any(kind.effect == "paths-shaped" for kind in kinds_of(kinds)) and "shaping" not in facts:
        yield Finding(name, "net-…", "warn", "nothing to shape packets with: they will be skipped")


def _guard(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node
    seen = facts.get("guard_seen", "").split()
    live = (
        len(seen) == 2
        and seen[1] == facts.get("boot_id")
        and float(facts.get("clock", "0")) - float(seen[0]) < GUARD_STALE_S
    )
    if not live:
        lost = "a reboot" if needing(kinds, "reboot") else "SIGKILL of a script, or a power failure,"
        text = f"no node guard: after {lost} a fault lasts until somebody runs `rig heal`"
        yield Finding(name, "guard", "warn", text, "rig bootstrap")
    elif facts.get("guard_current") == "0":
        text = "the guard is of another version of the rig: it may not understand the leases of this one"
        yield Finding(name, "guard", "fail", text, "rig bootstrap --yes renews it")
    else:
        yield Finding(name, "guard", "ok", "looks every 4 s")


def _power(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    """A Mac that falls asleep is a fault that nobody planned."""
    del node, kinds
    settings = dict(item.split() for item in facts.get("power", "").split(";") if len(item.split()) == 2)
    if not settings:
        return
    never = settings.get("SleepDisabled") == "1" or settings.get("disablesleep") == "1" or settings.get("sleep") == "0"
    if never:
        yield Finding(name, "sleep", "ok", "never sleeps")
    else:
        text = f"sleeps after {settings.get('sleep', '?')} minutes"
        yield Finding(name, "sleep", "fail", text, "sudo pmset -a sleep 0 disablesleep 1")
    if settings.get("autorestart") == "0":
        text = "does not start again by itself after a power failure"
        yield Finding(name, "power", "warn", text, "sudo pmset -a autorestart 1")


def _vault(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node
    if "filevault" not in facts:
        return
    off = facts["filevault"] == "FileVault is Off."  # "…, but will be enabled after the next restart" is not
    level: Level = "ok" if off else "fail" if needing(kinds, "reboot") else "warn"
    remedy = "" if off else "reboot faults are refused: the Mac would wait for a password before its network is up"
    yield Finding(name, "FileVault", level, facts["filevault"][:80], remedy)


def _firewall(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node, kinds
    if "firewall" not in facts:
        return
    off = "disabled" in facts["firewall"].lower()
    remedy = "" if off else "allow exo's Python beforehand: a question on the screen would stand there for ever"
    yield Finding(name, "firewall", "ok" if off else "warn", facts["firewall"][:80], remedy)


def _privacy(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    """macOS 15 and later keep a process that an SSH session left behind from the local network."""
    del node, kinds
    if "version" not in facts or "main" not in facts or int(facts["version"].partition(".")[0] or 0) < 15:
        return
    if "exo_job" in facts:
        yield Finding(name, "local network", "ok", f"exo runs as the launchd job {facts['exo_job']}")
    else:
        text = "exo is no launchd job: left behind by a session, it loses the local network (macOS 15 and later)"
        yield Finding(name, "local network", "warn", text, "give `exo.command` and let rig bootstrap make a daemon")


def _thunderbolt(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node
    if "rdma" in facts:
        on = "enabled" in facts["rdma"].lower()
        text = f"RDMA: {facts['rdma'][:60]}; devices: {facts.get('rdma_devices', 'none').strip() or 'none'}"
        remedy = "a partition of an MlxJaccl instance is partial: no packet filter sees RDMA" if on else ""
        yield Finding(name, "RDMA", "warn" if on and any(kind.cuts for kind in kinds_of(kinds)) else "ok", text, remedy)
    if "thunderbolt" in facts:
        yield Finding(name, "Thunderbolt", "ok", f"{facts['thunderbolt']} devices connected")


def _mlx(name: str, node: Node, facts: Facts, kinds: frozenset[str]) -> Iterator[Finding]:
    del node, kinds
    if "mlx" not in facts:
        return
    if "ModuleNotFoundError" in facts["mlx"]:
        text = f"not tried: the Python of exo's main process has no MLX ({facts['mlx'][:80]})"
        yield Finding(name, "MLX", "warn", text, "look at what exo runs on")
        return
    right = facts["mlx"] == MLX_RIGHT
    remedy = "" if right else "Metal may lack its device without a window server: log in on the screen once"
    text = "computes" if right else f"an MLX expression gave: {facts['mlx'][:160]}"
    yield Finding(name, "MLX", "ok" if right else "fail", text, remedy)


_JUDGES: tuple[Judge, ...] = (
    _home,
    _foreign,
    _sudo,
    _filter,
    _guard,
    _power,
    _vault,
    _firewall,
    _privacy,
    _thunderbolt,
    _mlx,
)
