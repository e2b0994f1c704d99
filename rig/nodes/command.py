"""One command of the inventory on a node: out of sight of the node's other users, and not under another's lock."""

from __future__ import annotations

from typing import Final, Literal

from rig.errors import NodeNotReady
from rig.nodes.scripts import script_command, script_stdin
from rig.nodes.ssh import NodeConnection

Which = Literal["start", "stop", "hold", "release"]

LOCKED: Final = 75  # status of command.sh: the lock is not that of the connection
_KEYS: Final[dict[Which, str]] = {"start": "start", "stop": "stop", "hold": "hold_cmd", "release": "release_cmd"}


async def carry_out(conn: NodeConnection, which: Which, *, timeout_s: float) -> None:
    """Runs `exo.WHICH`, which the inventory must have, to its end, by `sh -c`. The scripts must have been uploaded.

    Raises NodeNotReady when it ends badly or the node is locked by another rig; SshError, CommandTimeout.
    """
    command: str | None = getattr(conn.node.process, which)
    assert command is not None, f"the inventory has no exo.{which}"
    values = {"rig_dir": conn.node.rig_dir, "lock": conn.lock, _KEYS[which]: command}
    line = script_command(conn, "command.sh", values)
    result = await conn.run(line, timeout_s=timeout_s, check=False, stdin=script_stdin(values))
    if result.status == 0:
        return
    said = ((result.stderr or result.stdout).strip().splitlines() or ["no message"])[-1]
    if result.status == LOCKED:
        raise NodeNotReady(conn.name, f"`exo.{which}` was not run: {said}", remedy="wait for the other run to end")
    remedy = f"correct `exo.{which}` in the inventory"
    raise NodeNotReady(conn.name, f"`exo.{which}` ended with status {result.status}: {said}", remedy=remedy)
