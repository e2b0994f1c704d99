"""`rig init HOST…` for exo: what the hosts tell over SSH, as a commented inventory."""

from __future__ import annotations

import asyncio
import getpass
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import asyncssh

from rig.config.inventory import Ssh
from rig.errors import HostKeyError, SshError, UsageError
from rig.nodes.dial import CONNECT_TIMEOUT_S, Refused, trusted_keys
from rig.nodes.open import connection_to
from rig.targets.exo.discover import Discovered, FoundAddress, discover
from rig.targets.exo.fields import API_PORT, ExoProcess
from rig.targets.exo.inventory import ExoNode
from rig.targets.surveying import Survey, Surveying

_HOST = re.compile(r"(?:(?P<user>[^@:\s]+)@)?(?P<host>\[[0-9a-fA-F:.%]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class Surveyed:
    """A host that was reached. `pinned`: its key was not in known_hosts and is taken as seen."""

    ssh: Ssh
    pinned: bool
    found: Discovered


def survey(hosts: list[str], key: Path | None, name: str) -> Survey:
    """Raises UsageError for what is no host."""
    ends = [parse_host(host, key) for host in hosts]
    answers = asyncio.run(_survey_all(ends))
    reached = [answer for answer in answers if isinstance(answer, Surveyed)]
    names = _names([one.found.hostname for one in reached])
    return Survey(
        yaml=render(reached, name, datetime.now(UTC)),
        reached=len(reached),
        unknown=[
            f"{node}: not found out: {unknown}"
            for node, one in zip(names, reached, strict=True)
            for unknown in one.found.unknown
        ],
        lost=[str(answer) for answer in answers if isinstance(answer, SshError)],
    )


def parse_host(text: str, key: Path | None) -> Ssh:
    """`[user@]host[:port]`, IPv6 in brackets. Raises UsageError."""
    match = _HOST.fullmatch(text)
    if match is None:
        raise UsageError(f"expected [user@]host[:port], not {text!r}")
    try:
        return Ssh.model_validate(
            {
                "host": match["host"].strip("[]"),
                "port": int(match["port"] or 22),
                "user": match["user"],
                "key": None if key is None else str(key),
            }
        )
    except ValueError as error:
        raise UsageError(f"expected [user@]host[:port], not {text!r}") from error


async def _survey_all(ends: list[Ssh]) -> list[Surveyed | SshError]:
    return list(await asyncio.gather(*(_survey(ssh) for ssh in ends)))


async def _survey(ssh: Ssh) -> Surveyed | SshError:
    try:
        known, pinned = await _with_host_key(ssh)
        node = ExoNode(ssh=known, api=f"http://127.0.0.1:{API_PORT}", process=ExoProcess(home="/unknown"))
        conn = connection_to(ssh.host, node)
        try:
            return Surveyed(known, pinned, await discover(conn))
        finally:
            await conn.close()
    except SshError as error:
        return error


async def _with_host_key(ssh: Ssh) -> tuple[Ssh, bool]:
    """The known_hosts file decides where it knows the host; else the key is taken as the host shows it now."""
    try:
        trusted_keys(ssh.host, ssh)
    except Refused as refused:
        if not isinstance(refused.error, HostKeyError):
            raise refused.error from refused
    else:
        return ssh, False
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            key = await asyncssh.get_server_host_key(ssh.host, ssh.port, config=None)
    except (OSError, TimeoutError, asyncssh.Error) as error:
        why = str(error) or "no answer"
        remedy = "check that the machine is awake and that SSH (Remote Login on a Mac) is on"
        raise SshError(ssh.host, f"port {ssh.port} showed no SSH host key: {why}", remedy=remedy) from error
    if key is None:
        raise SshError(ssh.host, "it shows no host key")
    text = " ".join(key.export_public_key().decode().split()[:2])
    return ssh.model_copy(update={"host_key": text}), True


def render(surveyed: list[Surveyed], name: str, when: datetime) -> str:
    """The YAML. Pure; every value is written as a JSON string, which is YAML."""
    shared = _shared([one.found for one in surveyed])
    lines = [
        f"# Written by `rig init` on {when:%Y-%m-%d %H:%M} UTC from what the hosts told. Read it before the first run:",
        "# what follows `?` could not be found out. Then `rig doctor --inventory THIS-FILE`.",
        f"name: {_text(re.sub(r'[^A-Za-z0-9._-]', '-', name) or 'mine')}",
        "nodes:",
    ]
    names = _names([one.found.hostname for one in surveyed])
    for one, node in zip(surveyed, names, strict=True):
        lines += ["", f"  {node}:", *(f"    {line}" for line in _node(one, shared))]
    return "\n".join(lines) + "\n"


def _node(one: Surveyed, shared: set[str]) -> list[str]:
    found, ssh = one.found, one.ssh
    host = f"[{ssh.host}]" if ":" in ssh.host else ssh.host
    lines = ["ssh:", f"  host: {_text(ssh.host)}", f"  port: {ssh.port}"]
    lines.append(f"  user: {_text(ssh.user or getpass.getuser())}")
    if ssh.key is not None:
        lines.append(f"  key: {_text(ssh.key)}")
    if one.pinned and ssh.host_key is not None:
        lines += [
            "  # Not in known_hosts: this is the key as seen on first contact. Compare it on the machine itself:",
            "  # cat /etc/ssh/ssh_host_*_key.pub",
            f"  host_key: {_text(ssh.host_key)}",
        ]
    if found.port is None:
        lines.append(f"# ? the API's port; {API_PORT} is the default")
    lines.append(f"api: {_text(f'http://{host}:{found.port or API_PORT}')} # from the controller")
    lines += _addresses(found.addresses, shared)
    lines += _exo(found)
    lines.append(f"sudo: {'false' if found.user == 'root' else 'true'} # packet-filter commands go through `sudo -n`")
    lines.append("faults: true # false keeps every fault away from this node")
    return lines


def _addresses(addresses: list[FoundAddress], shared: set[str]) -> list[str]:
    lines = ["# Every address at which peers may reach it: a partition cuts them all, one that is missing is a hole."]
    own = [one for one in addresses if one.address.lower() not in shared]
    lines.append("addresses:" if own else "addresses: [] # ? none found: it cannot be cut off")
    lines += [f"  - {_text(one.address)} # {one.interface}" for one in own]
    lines += [
        f"  # left out, other hosts have it too: {one.address} ({one.interface})" for one in addresses if one not in own
    ]
    return lines


def _exo(found: Discovered) -> list[str]:
    lines = ["exo:"]
    if found.pid is None:
        lines.append("  # ? exo did not run; this is its usual home")
    else:
        lines.append(f"  # seen running as pid {found.pid}: {_comment(found.command or '')}")
    lines.append(f"  home: {_text(found.home)}")
    if found.match is not None:
        lines += ["  # recognised by its command line, which must contain this (extended regular expression):"]
        lines.append(f"  match: {_text(found.match)}")
    if found.started_by:
        lines.append(f"  # started by {_comment(found.started_by)}")
    lines += [f"  # {_comment(note)}" for note in found.notes]
    for name in ("start", "stop", "hold", "release"):
        if (command := getattr(found, name)) is not None:
            lines.append(f"  {name}: {_text(command)}")
    if found.start is None:
        lines.append("  # ? how it is started is not known; without it crash faults are refused")
        sudo = "" if found.user == "root" else "sudo -n "
        example = "/bin/launchctl kickstart system/LABEL" if found.os == "Darwin" else "systemctl start UNIT"
        lines.append(f'  # start: "{sudo}{example}"')
    return lines


def _shared(found: list[Discovered]) -> set[str]:
    """Addresses that more than one host has (bridges of virtual machines): they name nobody."""
    seen: list[str] = [text for one in found for text in {address.address.lower() for address in one.addresses}]
    return {text for text in seen if seen.count(text) > 1}


def _names(hostnames: list[str]) -> list[str]:
    """Node names from host names, made to fit and to differ."""
    names: list[str] = []
    for number, hostname in enumerate(hostnames, start=1):
        base = re.sub(r"[^a-z0-9-]+", "-", hostname.split(".")[0].lower()).strip("-")[:40] or f"node-{number}"
        names.append(base if base not in names else f"{base}-{number}")
    return names


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=True)


def _comment(text: str) -> str:
    """Text that cannot leave its comment."""
    return " ".join(text.split())[:200]


INIT: Final = Surveying(survey)
