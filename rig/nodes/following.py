"""Following a log on a node: the shell text that does it, and what its lines are. Pure.

`tail -F` survives the rotation that every start of the target brings. The tail ends when its channel does, so that
nothing is left on the node whatever dies first.
"""

from __future__ import annotations

import shlex
from typing import Final

from rig.nodes.node import LineAge, LoggedLine

_SIGN: Final = "@rig-sign "
_PAST: Final = "@rig-past "
_MARK: Final = "@rig-following"
_AGES: Final[dict[str, LineAge]] = {_SIGN: "sign", _PAST: "past"}


def follow_command(path: str, pattern: str, *, back: int) -> str:
    """sh: the last line with the pattern, the `back` last lines, a mark, then every line after those.

    What is past and what is new is told apart by the log's size at the start, so that no line falls in between. `cat`
    waits for the end of stdin, that is of the channel, and ends the tail.
    """
    log = shlex.quote(path)
    return (
        f"size=$( {{ wc -c <{log}; }} 2>/dev/null )\nsize=$((${{size:-0}}))\n"
        f"past() {{ head -c $size {log} 2>/dev/null; }}\n"
        f"past | grep -E {shlex.quote(pattern)} | tail -n 1 | sed 's/^/{_SIGN}/'\n"
        f"past | tail -n {back} | sed 's/^/{_PAST}/'\n"
        f"echo {_MARK}\n"
        f"exec 3<&0\ntail -c +$((size + 1)) -F {log} 2>/dev/null &\nt=$!\n"
        "{ cat <&3 >/dev/null; kill $t; } >/dev/null 2>&1 &\nc=$!\nexec 3<&-\n"
        "wait $t\nkill $c 2>/dev/null\n"
    )


class Reader:
    """Lines of that command in, lines of the log out. Only before the mark can a line be of the past. Pure."""

    def __init__(self) -> None:
        self._following = False

    def take(self, line: str) -> LoggedLine:
        if self._following:
            return LoggedLine("new", line)
        if line == _MARK:
            self._following = True
            return LoggedLine("mark")
        for prefix, age in _AGES.items():
            if line.startswith(prefix):
                return LoggedLine(age, line.removeprefix(prefix))
        return LoggedLine("past", line)  # the rest of a line that was cut
