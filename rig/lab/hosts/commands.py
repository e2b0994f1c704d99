"""What the machine of a node in namespaces does for the node's commands. On Linux most commands are the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rig.lab.embedded.machine.answering import Answer, Handler
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.nft import CommandError
from rig.lab.hosts.filter_watch import FilterWatch

REBOOTS = {("reboot",), ("reboot", "-q"), ("reboot", "-f"), ("shutdown", "-r", "now")}


def status(rules: list[str]) -> Answer:
    """As the machine of a node without namespaces says it. The kernel holds data back here: how much is not known."""
    lines = ["held\t0", *(f"rule\t{rule}" for rule in rules)]
    return Answer(0, out="\n".join(lines) + "\n")


def power(reboot: Callable[[], object]) -> Mapping[str, Handler]:
    """`reboot` and `shutdown`: the node goes down at once and boots again."""

    def handler(name: str) -> Handler:
        async def handle(arguments: list[str], folder: str) -> Answer:
            del folder
            if (name, *arguments) not in REBOOTS:
                raise CommandError(f"{name}: not emulated: {name} {' '.join(arguments)}")
            reboot()
            return Answer(0)

        return handle

    return {name: handler(name) for name in ("reboot", "shutdown")}


def linux(exo: ExoMain, watch: FilterWatch, reboot: Callable[[], object]) -> dict[str, Handler]:
    async def start(arguments: list[str], folder: str) -> Answer:
        del arguments, folder
        problem = await exo.start()
        return Answer(0) if problem is None else Answer(1, err=f"{problem}\n")

    async def stop(arguments: list[str], folder: str) -> Answer:
        del arguments, folder
        return Answer(0) if await exo.stop() else Answer(1, err="exo does not end\n")

    async def tell(arguments: list[str], folder: str) -> Answer:
        del arguments, folder
        return status([str(rule) for rule in watch.rules])

    return {"nft": watch.run, "exo-start": start, "exo-stop": stop, "status": tell, **power(reboot)}
