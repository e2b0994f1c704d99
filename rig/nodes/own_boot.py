"""The boot of the machine that the rig itself runs on: a node of the same boot must not be restarted.

So it is with a node that is also the controller, and with the nodes of an embedded cluster that are mere processes.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

LINUX_BOOT = Path("/proc/sys/kernel/random/boot_id")
THE_RIGS_OWN = "the rig runs on this machine: a restart would end it, and nobody could tell how it went"


async def own_boot() -> str:
    """As `inspect.sh` tells it of a node; empty where this system does not say."""
    if sys.platform != "darwin":
        return _linux_boot()
    process = await asyncio.create_subprocess_exec(
        *("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    return out.decode().strip()


def _linux_boot() -> str:
    return LINUX_BOOT.read_text().strip() if LINUX_BOOT.exists() else ""
