"""OpenSSH's server on a node, in the node's own root folder; started again when it ends, as launchd or systemd does."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.settings import MARKER, NodeSettings
from rig.lab.hosts.places import DARWIN_PATH, LINUX_PATH
from rig.lab.hosts.root import tree

RESTART_S = 0.2

CONFIG = """\
Port {port}
AddressFamily any
HostKey {folder}/ssh_host_key
AuthorizedKeysFile {folder}/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PidFile none
LogLevel ERROR
SetEnv {marker}={value} PATH={path}
"""


def write_config(settings: NodeSettings) -> Path:
    """Everything sshd reads, in the node's folder. Returns the configuration's path, the same inside and outside."""
    folder = Path(settings.folder)
    key = folder / "ssh_host_key"
    key.write_bytes(Path(settings.host_key).read_bytes())
    key.chmod(0o600)
    (folder / "authorized_keys").write_text(settings.client_key + "\n")
    path = DARWIN_PATH if settings.system == "darwin" else LINUX_PATH
    config = folder / "sshd_config"
    config.write_text(
        CONFIG.format(port=settings.ssh_port, folder=folder, marker=MARKER, value=settings.marker, path=path)
    )
    return config


async def serve(settings: NodeSettings) -> None:
    """Until cancelled."""
    config = write_config(settings)
    root = tree(settings)
    (root / "run" / "sshd").mkdir(mode=0o755, exist_ok=True)
    log = Path(settings.folder) / "sshd.log"
    while True:
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *("chroot", str(root), "/usr/sbin/sshd", "-D", "-e", "-f", str(config)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=node_environment(settings) | {"PATH": LINUX_PATH},
                start_new_session=True,
            )
        try:
            await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        await asyncio.sleep(RESTART_S)
