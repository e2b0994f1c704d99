"""A virtual Mac: launchd, pf, and what its commands ask of the machine."""

from __future__ import annotations

import asyncio
import plistlib
from collections.abc import Callable
from pathlib import Path

from rig.lab.embedded.machine.answering import Answer, Handler
from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.guard import start_guard
from rig.lab.embedded.machine.real import real
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts import commands
from rig.lab.hosts.places import DARWIN_PATH
from rig.lab.hosts.root import tree
from rig.lab.ledger import FilterChanged, Ledger
from rig.lab.mac.dnctl import Dnctl
from rig.lab.mac.facts import Facts
from rig.lab.mac.interfaces import ifconfig, route
from rig.lab.mac.launchd import Launchd
from rig.lab.mac.pf.firewall import Firewall, kernel_nft
from rig.lab.mac.pf.pfctl import Pfctl
from rig.lab.mac.ps import ps


class Mac:
    def __init__(self, settings: NodeSettings, ledger: Ledger, exo: ExoMain, reboot: Callable[[], object]) -> None:
        self.settings = settings
        self.ledger = ledger
        self.firewall = Firewall(kernel_nft)
        self.launchd = Launchd(settings, exo)
        self._pfctl = Pfctl(self.firewall)
        self._dnctl = Dnctl(self.firewall)
        self._facts = Facts(settings)
        self._reboot = reboot
        self._lock = asyncio.Lock()
        self._rules: list[str] = []

    def handlers(self) -> dict[str, Handler]:
        return {
            "pfctl": self._filter,
            "dnctl": self._pipes,
            "launchctl": self.launchd.launchctl,
            "sysctl": self._facts.sysctl,
            "vm_stat": self._facts.vm_stat,
            "df": self._facts.df,
            "ps": self._ps,
            "ifconfig": _sync(ifconfig),
            "route": _sync(route),
            "lsof": self._lsof,
            "plutil": self._plutil,
            "status": self._status,
            **commands.power(self._reboot),
        }

    async def boot(self) -> str | None:
        """The main ruleset is loaded, pf is not enabled; then the daemons."""
        said = await asyncio.to_thread(self._pfctl.run, ["-f", "/etc/pf.conf"], self._reader("/"))
        if said.status != 0:
            return said.err
        return await self.launchd.boot()

    async def run(self) -> None:
        environment = node_environment(self.settings) | {"PATH": DARWIN_PATH}
        await start_guard(self.settings, environment, prefix=("chroot", str(tree(self.settings))))
        await self.launchd.run()

    async def _filter(self, arguments: list[str], folder: str) -> Answer:
        async with self._lock:
            said = await asyncio.to_thread(self._pfctl.run, arguments, self._reader(folder))
            self._note("pfctl " + " ".join(arguments))
        return Answer(said.status, said.out, said.err)

    async def _pipes(self, arguments: list[str], folder: str) -> Answer:
        del folder
        async with self._lock:
            return await asyncio.to_thread(self._dnctl.run, arguments)

    def _note(self, command: str) -> None:
        """Into the ledger, when other rules are in force now."""
        rules = self._in_force()
        if rules != self._rules:
            packets = self.firewall.removed_packets
            self._rules = rules
            now = self.ledger.now()
            self.ledger.write(
                FilterChanged(t=now, node=self.settings.name, command=command, rules=rules, packets=packets)
            )

    def _in_force(self) -> list[str]:
        return [
            f"{each.anchor or 'main'} {direction}: {each.rule}"
            for each in self.firewall.in_force()
            for direction in ("in", "out")
            if each.rule.direction in {None, direction}
        ]

    def _reader(self, folder: str) -> Callable[[str], str]:
        root = tree(self.settings)

        def read(path: str) -> str:
            return Path(f"{root}{Path(folder) / path}").read_text()

        return read

    async def _status(self, arguments: list[str], folder: str) -> Answer:
        del arguments, folder
        return commands.status(self._rules)

    async def _ps(self, arguments: list[str], folder: str) -> Answer:
        """The last argument is `TZ=ZONE`, or `TZ` where that is not set: then the machine's own zone counts."""
        del folder
        *options, asked = arguments
        _, told, zone = asked.partition("=")
        return ps(options, zone if told else f":{tree(self.settings)}/etc/localtime")

    async def _lsof(self, arguments: list[str], folder: str) -> Answer:
        """The real one, from outside the folder that has no /proc."""
        del folder
        return await real("/usr/bin/lsof", *arguments)

    async def _plutil(self, arguments: list[str], folder: str) -> Answer:
        match arguments:
            case ["-lint", path] | ["-lint", "-s", path]:
                try:
                    plistlib.loads(self._reader(folder)(path).encode())
                except (OSError, plistlib.InvalidFileException, ValueError) as error:
                    return Answer(1, out=f"{path}: {error}\n")
                return Answer(0, out=f"{path}: OK\n")
            case _:
                return Answer(1, err=f"plutil: not emulated: plutil {' '.join(arguments)}\n")


def _sync(answer: Callable[[list[str]], Answer]) -> Handler:
    async def handle(arguments: list[str], folder: str) -> Answer:
        del folder
        return answer(arguments)

    return handle
