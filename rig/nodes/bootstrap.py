"""`bootstrap.sh` on a node: what its owner lets the rig have there, planned, installed, removed.

It is run as root from a folder of its own that is gone afterwards, so that looking at the plan leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, get_args

from rig.errors import NodeNotReady
from rig.faults.plan.kind import Right
from rig.faults.plan.registry import kinds_of
from rig.nodes.operations import ShellNode
from rig.nodes.scripts import Bundle, called, q, stock_bundle

Step = Literal["plan", "install", "remove"]

REFUSED: Final = 12
LIMIT_S: Final = 120.0

# $1: how to become root (may be empty), $2…: the arguments of bootstrap.sh; the scripts come as a tar archive.
_RUN = """
umask 022
how=$1; shift
d=$(mktemp -d /tmp/rig-bootstrap.XXXXXX) || exit 1
tar xf - -C "$d" && $how sh "$d/bootstrap.sh" "$@" </dev/null; status=$?
rm -rf "$d"
exit $status
"""


@dataclass(frozen=True)
class Bootstrapped:
    """What the script said, a line each. `refused`: it found something that is not its own, and did nothing."""

    node: str
    refused: bool
    lines: list[str]


def allowed_for(kinds: Collection[str]) -> list[str]:
    """The groups of commands that a user needs `sudo` for, given the kinds of faults to be struck. Pure."""
    wanted = {kind.right for kind in kinds_of(kinds)}
    rights: tuple[Right, ...] = get_args(Right)
    return [right for right in rights if right in wanted]


def arguments(conn: ShellNode, user: str, step: Step, allow: Collection[str]) -> dict[str, str]:
    """What bootstrap.sh is called with. Pure."""
    process = conn.node.process
    daemon = {"exo_command": process.command, "exo_home": process.home} if process.command is not None else {}
    return {"step": step, "rig_dir": conn.node.rig_dir, "user": user, "allow": " ".join(allow), **daemon}


async def bootstrap(
    conn: ShellNode, step: Step, allow: Collection[str], *, bundle: Bundle | None = None
) -> Bootstrapped:
    """Runs one step. Raises NodeNotReady when root cannot be had or the script fails, and other NodeErrors."""
    user = (await conn.run("id -un")).stdout.strip()
    how = "" if user == "root" else "sudo -n"
    given = arguments(conn, user, step, allow)
    words = [f"{key}={value}" for key, value in given.items() if value]
    if how and step != "plan" and (await conn.run("sudo -n true", check=False)).status != 0:
        by_hand = " ".join(["sudo sh faults/bootstrap.sh", *map(q, words)])
        remedy = f"copy the folder faults/ there and run, with your password: {by_hand}"
        raise NodeNotReady(conn.name, "this user cannot become root without a password", remedy=remedy)
    command = called(_RUN, "" if step == "plan" else how, *words)
    result = await conn.run(command, stdin=(bundle or stock_bundle()).archive(), timeout_s=LIMIT_S, check=False)
    if result.status not in (0, REFUSED):
        why = (result.stderr.strip().splitlines() or [f"status {result.status}"])[-1]
        raise NodeNotReady(conn.name, f"bootstrap.sh: {why}")
    return Bootstrapped(conn.name, result.status == REFUSED, (result.stdout + result.stderr).splitlines())
