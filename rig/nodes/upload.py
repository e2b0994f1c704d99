"""Putting the node scripts on a node: once per content, whole, and proved by checksum."""

from __future__ import annotations

import secrets
from typing import Final

from rig.errors import CommandFailed, NodeNotReady
from rig.nodes.scripts import Bundle, called, stock_bundle
from rig.nodes.shell import Shell

_INSTALL: Final = """
LC_ALL=C; export LC_ALL; umask 077; dir=$1; final=$2; new=$3; aside=$4; want=$5
fail() { echo "$1" >&2; rm -rf "$new"; exit 1; }
sums() { (cd "$1" 2>/dev/null && set -- $(cksum *.sh 2>/dev/null) && echo "$*"); }
mkdir -p "$dir" || exit 1
# A folder of somebody else in /var/tmp, or a link, could make us run their scripts.
[ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] || { echo "$dir is not a folder of this user" >&2; exit 1; }
[ "$(sums "$final")" = "$want" ] && exit 0
mkdir "$new" || exit 1
tar xf - -C "$new" || fail "the scripts cannot be unpacked"
[ "$(sums "$new")" = "$want" ] || fail "the scripts differ from what was sent"
# An incomplete folder of the same name is moved aside, not emptied: a script in it may be running.
if [ -e "$final" ]; then mv "$final" "$aside"; fi
mv "$new" "$final" || fail "the scripts cannot be put in place"
[ "$(sums "$final")" = "$want" ] || fail "the scripts differ from what was sent"
"""


async def upload(conn: Shell, bundle: Bundle | None = None) -> str:
    """Puts the scripts on the node unless they are there, and proves them by checksum. Returns their folder.

    The folder appears whole under its final name. Raises NodeNotReady when `rig_dir` cannot be written or is not ours,
    TransportError, CommandTimeout.
    """
    scripts = bundle or stock_bundle()
    final = f"{conn.node.rig_dir}/{scripts.folder}"
    unique = secrets.token_hex(4)
    places = (conn.node.rig_dir, final, f"{final}.{unique}.new", f"{final}.{unique}.old", scripts.sums())
    try:
        await conn.run(called(_INSTALL, *places), stdin=scripts.archive(), timeout_s=20)
    except CommandFailed as exc:
        remedy = "give a `rig_dir` that the SSH user can create or owns, on a disk with room"
        why = (exc.stderr.strip().splitlines() or ["no message"])[-1]
        raise NodeNotReady(
            conn.name, f"cannot put node scripts into {conn.node.rig_dir}: {why}", remedy=remedy
        ) from exc
    return final
