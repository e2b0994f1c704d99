"""What differs between the systems that a node can have: its commands and their place, how exo is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rig.lab.embedded.machine.answering import Handler
from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.guard import start_guard
from rig.lab.embedded.machine.shims import INERT, shim
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts import commands
from rig.lab.hosts.filter_watch import FilterWatch
from rig.lab.hosts.places import LINUX_PATH
from rig.lab.hosts.root import tree
from rig.lab.hosts.tc import Tc, kernel_delays
from rig.lab.ledger import Ledger

# Of a machine whose `tc` knows netem, as the scripts look for it; of other modules it knows nothing.
MODINFO = """\
#!/bin/sh
[ "$*" = sch_netem ] || exit 1
echo 'name: sch_netem'
"""


class System(Protocol):
    def handlers(self) -> dict[str, Handler]:
        """By the name of the command."""
        ...

    async def boot(self) -> str | None:
        """Start what a boot starts, exo included. Why it failed, or None."""
        ...

    async def run(self) -> None:
        """Whatever goes on while the node is up, until cancelled."""
        ...


def furnish(settings: NodeSettings) -> None:
    """Put the system's commands into the node's root folder. Raises OSError."""
    if settings.system == "darwin":
        from rig.lab.mac.furnish import furnish_mac  # noqa: PLC0415 (only virtual Macs need it)

        furnish_mac(settings)
        return
    folder = tree(settings) / "usr" / "local" / "bin"
    for name in ("nft", "exo-start", "exo-stop", "reboot", "shutdown"):
        put(folder / name, shim(settings, name))
    if not kernel_delays():
        put(folder / "tc", shim(settings, "tc"))
        put(folder / "modinfo", MODINFO)
    for name in settings.inert:
        put(folder / name, INERT)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def system_of(settings: NodeSettings, ledger: Ledger, exo: ExoMain, reboot: Callable[[], object]) -> System:
    if settings.system == "darwin":
        from rig.lab.mac.system import Mac  # noqa: PLC0415 (only virtual Macs need it)

        return Mac(settings, ledger, exo, reboot)
    return Linux(settings, ledger, exo, reboot)


class Linux:
    def __init__(self, settings: NodeSettings, ledger: Ledger, exo: ExoMain, reboot: Callable[[], object]) -> None:
        self._settings = settings
        self._exo = exo
        self._reboot = reboot
        self._watch = FilterWatch(settings.name, ledger)
        self._tc = Tc()

    def handlers(self) -> dict[str, Handler]:
        return {"tc": self._tc.run, **commands.linux(self._exo, self._watch, self._reboot)}

    async def boot(self) -> str | None:
        return await self._exo.start()

    async def run(self) -> None:
        environment = node_environment(self._settings) | {"PATH": LINUX_PATH}
        await start_guard(self._settings, environment, prefix=("chroot", str(tree(self._settings))))
        await self._watch.follow()
