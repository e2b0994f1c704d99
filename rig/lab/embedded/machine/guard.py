"""The node guard of an emulated node: the stock `guard.sh`, started with the machine as launchd or systemd would."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rig.config.stock import scripts_folder
from rig.lab.embedded.settings import NodeSettings


async def start_guard(
    settings: NodeSettings, environment: Mapping[str, str], *, prefix: tuple[str, ...] = ()
) -> asyncio.subprocess.Process | None:
    """None when the inventory asks for none. It ends with its node, as every process of it does."""
    if not settings.guard:
        return None
    return await asyncio.create_subprocess_exec(
        *prefix,
        "sh",
        str(scripts_folder() / "guard.sh"),
        f"rig_dir={settings.rig_dir}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
    )
