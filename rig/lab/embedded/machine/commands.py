"""What the node's commands do, asked over the control socket by the shims in `bin/`."""

from __future__ import annotations

import asyncio
import shutil

from rig.lab.embedded.machine.answering import Answer, Answering, Become, Handler
from rig.lab.embedded.machine.environment import SYSTEM_PATH
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.network import Network
from rig.lab.embedded.machine.nft import CommandError, Nft, ReadFile
from rig.lab.embedded.machine.pf import Pf
from rig.lab.embedded.machine.sockets import open_sockets
from rig.lab.embedded.settings import NodeSettings

MAX_NC_TIMEOUT_S = 20.0


class Commands:
    """One per machine; `answering` serves the connections of the shims."""

    def __init__(self, settings: NodeSettings, network: Network, exo: ExoMain) -> None:
        self.settings = settings
        self.network = network
        self.exo = exo
        self._nft = Nft(network.filter)
        self._pf = Pf(network.filter)
        handlers: dict[str, Handler] = {
            "nft": self._filter,
            "pfctl": self._pfctl,
            "nc": self._nc,
            "lsof": self._lsof,
            "exo-start": self._start,
            "exo-stop": self._stop,
            "status": self._status,
        }
        self.answering = Answering(handlers)

    async def _filter(self, arguments: list[str], folder: str) -> Answer:
        return Answer(0, out=self._nft.run(arguments, ReadFile(folder)))

    async def _pfctl(self, arguments: list[str], folder: str) -> Answer:
        return Answer(0, out=self._pf.run(arguments, ReadFile(folder)))

    async def _nc(self, arguments: list[str], folder: str) -> Answer | Become:
        del folder
        match [word for word in arguments if word not in {"-4", "-6"}]:
            case ["-z", "-w", seconds, address, port] if self.network.virtual(address):
                return await self._probe(address, port, seconds)
            case words if any(self.network.virtual(word) for word in words):
                raise CommandError(f"nc: not emulated: nc {' '.join(arguments)}")
            case _:
                return _real("nc", arguments)

    async def _probe(self, address: str, port: str, seconds: str) -> Answer:
        try:
            timeout_s = min(float(seconds), MAX_NC_TIMEOUT_S)
            opened = await self.network.probe(address, int(port), timeout_s=timeout_s)
        except ValueError as error:
            raise CommandError(f"nc: {error}") from error
        return Answer(0 if opened else 1)

    async def _lsof(self, arguments: list[str], folder: str) -> Answer | Become:
        del folder
        match arguments:
            case ["-nP", "-a", "-p", pids, "-iTCP", "-Fpn"]:
                wanted = {int(pid) for pid in pids.split(",") if pid.isdigit()}
                text = open_sockets(self.settings, self.network.links, self.exo.pid, wanted)
                return Answer(0 if text else 1, out=text)
            case _ if "-i" in arguments or any(word.startswith("-i") for word in arguments):
                raise CommandError(f"lsof: not emulated: lsof {' '.join(arguments)}")
            case _:
                return _real("lsof", arguments)

    async def _start(self, arguments: list[str], folder: str) -> Answer:
        del folder
        if arguments:
            raise CommandError("exo-start: takes no arguments")
        problem = await self.exo.start()
        return Answer(0) if problem is None else Answer(1, err=f"{problem}\n")

    async def _stop(self, arguments: list[str], folder: str) -> Answer:
        del folder
        if arguments:
            raise CommandError("exo-stop: takes no arguments")
        return Answer(0) if await self.exo.stop() else Answer(1, err="exo does not end\n")

    async def _status(self, arguments: list[str], folder: str) -> Answer:
        """For the sampler and `rig cluster status`: filter rules with their packets, bytes held back, connections."""
        del arguments, folder
        packet_filter = self.network.filter
        lines = [f"held\t{self.network.held_bytes()}", f"links\t{len(self.network.links)}"]
        lines += [f"rule\t{rule}" for rule in packet_filter.rules()] if packet_filter.enabled else []
        lines += [f"dropped\t{owner}\t{packet_filter.dropped_packets(owner)}" for owner in packet_filter.chains]
        return Answer(0, out="\n".join(lines) + "\n")


def _real(name: str, arguments: list[str]) -> Become:
    path = shutil.which(name, path=SYSTEM_PATH)
    if path is None:
        raise CommandError(f"{name}: not found on this machine")
    return Become([path, *arguments])


async def serve(settings: NodeSettings, commands: Commands) -> asyncio.Server:
    return await commands.answering.serve(settings.control_socket)
