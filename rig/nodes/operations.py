"""The operations of a node that has a shell: what `NodeConnection` names, as commands and node scripts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from rig.errors import NodeError, NodeNotReady
from rig.nodes.following import Reader, follow_command
from rig.nodes.inspect import Inspection, What, parse_inspection
from rig.nodes.node import Evidence, Heard, LoggedLine, NodeTime, ReadClock, ScriptEnd, Which
from rig.nodes.scripts import ScriptEvent, called, on_path, parse_event, script_command, script_stdin
from rig.nodes.shell import Shell

COMMAND_KEYS: Final[dict[Which, str]] = {"start": "start", "stop": "stop", "hold": "hold_cmd", "release": "release_cmd"}
LOCKED: Final = 75  # status of command.sh: the lock is not that of the connection

# The same clock as lib.sh: one line out for each line in, no process started in between.
_CLOCK: Final = (
    'PATH=$PATH:/usr/bin:/bin; case "$(uname -s)" in '
    'Linux) while read -r _; do read -r up _ </proc/uptime; echo "$up"; done ;; '
    "*) exec perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e "
    "'$| = 1; printf \"%.4f\\n\", clock_gettime(CLOCK_MONOTONIC) while <STDIN>' ;; esac"
)
# Read-only, each part bounded; what is not there says nothing. $1: rig_dir. The packet filter is shown by inspect.sh.
_STATE: Final = """
PATH=$PATH:/usr/sbin:/sbin; dir=$1
part() { echo "==== $*"; "$@" 2>&1 | head -c 65536; }
part ps -axww -o pid,ppid,state,lstart,rss,command
if [ "$(uname -s)" = Darwin ]; then
    part vm_stat
else
    part cat /proc/meminfo
fi
for lease in "$dir"/leases/*; do [ ! -f "$lease" ] || part cat "$lease"; done
"""
# $1: the target's log, $2: bytes. A target may rotate it at every start, so the earlier one is read first.
_LOG: Final = """
before=$(ls -t "$(dirname "$1")" 2>/dev/null | grep -v "^$(basename "$1")$" | grep '[.]log' | head -n 1)
{ [ -z "$before" ] || { echo "==== $before"; tail -c "$2" "$(dirname "$1")/$before"; }
echo "==== $1"; tail -c "$2" "$1"; } 2>&1 | tail -c "$2"
"""


class ShellNode(Shell):
    """A `NodeConnection` over a shell."""

    async def inspect(
        self, what: What = "all", *, pids: Sequence[int] | None = None, timeout_s: float = 10.0
    ) -> Inspection:
        values = {"log": self.node.process.log_path, "what": what}
        if pids is not None:
            values["pids"] = " ".join(map(str, pids))
        said = await self.script("inspect.sh", values, timeout_s=timeout_s)
        return parse_inspection(self.name, said, self.node.process.is_worker)

    async def script(self, script: str, values: Mapping[str, str], *, timeout_s: float) -> str:
        return (await self.run(script_command(self.node, script, values), timeout_s=timeout_s)).stdout

    async def strike(self, script: str, values: Mapping[str, str], heard: Heard, *, timeout_s: float) -> ScriptEnd:
        return await self._follow(script, {**values, "lock": self.lock}, heard, timeout_s)

    async def heal(self, what: str, heard: Heard, *, timeout_s: float) -> ScriptEnd:
        return await self._follow("heal.sh", {"what": what}, heard, timeout_s)

    async def fault_log(self, fault_id: str, *, timeout_s: float) -> list[ScriptEvent]:
        path = f"{self.node.rig_dir}/log/{fault_id}.log"
        said = await self.run(f"cat {shlex.quote(path)}", timeout_s=timeout_s, check=False)
        return [event for event in map(parse_event, said.stdout.splitlines()) if event is not None]

    async def carry_out(self, which: Which, *, timeout_s: float) -> None:
        """By `sh -c`, out of sight of the node's other users."""
        command: str | None = getattr(self.node.process, which)
        written = f"{self.node.process.section}.{which}"
        assert command is not None, f"the inventory has no {written}"
        values = {"lock": self.lock, COMMAND_KEYS[which]: command}
        line, stdin = script_command(self.node, "command.sh", values), script_stdin(values)
        result = await self.run(line, timeout_s=timeout_s, check=False, stdin=stdin)
        if result.status == 0:
            return
        said = _last_line(result.stderr or result.stdout) or "no message"
        if result.status == LOCKED:
            raise NodeNotReady(self.name, f"`{written}` was not run: {said}", remedy="wait for the other run to end")
        remedy = f"correct `{written}` in the inventory"
        raise NodeNotReady(self.name, f"`{written}` ended with status {result.status}: {said}", remedy=remedy)

    @asynccontextmanager
    async def clock(self, *, timeout_s: float) -> AsyncGenerator[ReadClock]:
        async with self.stream(on_path(self.node, _CLOCK), timeout_s=timeout_s) as stream:
            lines = stream.lines()

            async def read() -> NodeTime:
                await stream.write(b"\n")
                return self._node_time(await anext(lines, ""))

            await read()  # the first one pays for the start of the command
            yield read
            stream.end_input()

    async def follow_log(self, path: str, pattern: str, *, back: int) -> AsyncGenerator[LoggedLine]:
        reader = Reader()
        async with self.stream(follow_command(path, pattern, back=back), timeout_s=None) as stream:
            async for line in stream.lines():
                yield reader.take(line)

    async def answering(self, addresses: Sequence[str], port: int, *, timeout_s: float) -> set[str]:
        tries = [
            f"{{ nc {'-6 ' if ':' in address else ''}-z -w 1 {shlex.quote(address)} {port} >/dev/null 2>&1"
            f" && echo {shlex.quote(address)}; }} &"
            for address in addresses
        ]
        said = await self.run(on_path(self.node, f"{' '.join(tries)} wait"), timeout_s=timeout_s, check=False)
        return set(said.stdout.split())

    async def controller_address(self) -> str:
        return (await self.run('printf %s "${SSH_CONNECTION%% *}"')).stdout.strip()

    async def evidence(self, *, state_bytes: int, log_bytes: int, timeout_s: float) -> Evidence:
        log = self.node.process.log_path
        rules, state, lines = await asyncio.gather(
            self._shown(script_command(self.node, "inspect.sh", {"what": "rules"}), timeout_s),
            self._shown(on_path(self.node, called(_STATE, self.node.rig_dir)), timeout_s),
            self._shown(on_path(self.node, called(_LOG, log, str(log_bytes))), timeout_s),
        )
        return Evidence((rules + state)[:state_bytes], lines[-log_bytes:])

    async def _follow(self, script: str, values: Mapping[str, str], heard: Heard, timeout_s: float) -> ScriptEnd:
        stdin = script_stdin(values)
        async with self.stream(script_command(self.node, script, values), timeout_s=timeout_s, stdin=stdin) as stream:
            async for line in stream.lines():
                if (event := parse_event(line)) is not None:
                    heard(event)
            result = await stream.wait()
        return ScriptEnd(result.status, result.signal, _last_line(result.stderr))

    async def _shown(self, command: str, timeout_s: float) -> bytes:
        try:
            said = await self.run(command, timeout_s=timeout_s, check=False)
        except NodeError as error:
            return f"not collected: {error.message}\n".encode()
        return (said.stdout + said.stderr).encode(errors="replace")

    def _node_time(self, line: str) -> NodeTime:
        try:
            node_t = float(line)
        except ValueError:
            remedy = "is perl there (macOS), or /proc?"
            raise NodeError(self.name, f"no clock reading but {line[:80]!r}", remedy=remedy) from None
        decimals = len(line.strip().partition(".")[2])
        return NodeTime(node_t, 10.0**-decimals)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
