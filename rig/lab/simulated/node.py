"""SSH to a simulated node: what the rig runs there, recognised and answered. Anything else fails with status 127."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from rig.config.inventory import Node
from rig.errors import CommandFailed, CommandTimeout
from rig.lab.exo.simulation import Simulation
from rig.lab.simulated.event_file import VirtualEventFile
from rig.lab.simulated.inspecting import NodeClock, inspection, probe
from rig.lab.simulated.scripts import RunningScript, Scripts
from rig.nodes.ssh import NodeConnection
from rig.nodes.stream import Result, Stream

START: Final = "start-exo"  # the command of the simulated inventory
STOP: Final = "stop-exo"
_LATENCY_S: Final = 0.02
_START_S: Final = 0.5
_LOG_LOOK_S: Final = 0.1
_SCRIPT: Final = re.compile(r"/scripts-[0-9a-f]+/([a-z-]+\.sh) ")
_MASTER: Final = re.compile("(promoting|maintaining|demoting) self|Node [^ ]+ elected master")
_MAX_LINES: Final = 10_000


class VirtualNode(NodeConnection):
    """As `NodeConnection`, with the same exceptions; commands take 20 ms, faults as long as they hold."""

    def __init__(self, name: str, node: Node, sim: Simulation, addresses: dict[str, str]) -> None:
        super().__init__(name, node)
        self._sim = sim
        self._addresses = addresses
        self._clock = NodeClock(sim, name)
        self._scripts = Scripts(sim, name, self._clock, addresses)
        self._event_file = VirtualEventFile(sim, name)
        self._tails: list[asyncio.Task[int]] = []

    async def connect(self, *, timeout_s: float = 0.0) -> None:
        del timeout_s

    async def close(self) -> None:
        for task in self._tails:
            task.cancel()
        await asyncio.gather(*self._tails, return_exceptions=True)

    async def run(
        self, command: str, *, timeout_s: float = 10.0, check: bool = True, stdin: str | bytes | None = None
    ) -> Result:
        try:
            async with asyncio.timeout(timeout_s):
                status, stdout = await self._run(command, stdin)
        except TimeoutError as exc:
            raise CommandTimeout(self.name, f"`{command[:80]}` did not end within {timeout_s:g} s") from exc
        if check and status != 0:
            raise CommandFailed(self.name, command[:80], status, stdout)
        return Result(status, stdout, "")

    @asynccontextmanager
    async def stream(
        self, command: str, *, timeout_s: float | None = None, stdin: bytes | None = None
    ) -> AsyncGenerator[Stream]:
        lines: asyncio.Queue[str | None] = asyncio.Queue(_MAX_LINES)
        loop = asyncio.get_running_loop()
        stream = VirtualStream(self, command, lines, None if timeout_s is None else loop.time() + timeout_s)
        await asyncio.sleep(_LATENCY_S)
        stream.begin(self._work(command, stdin, stream))
        try:
            yield stream
        finally:
            await stream.close()

    def _work(self, command: str, stdin: bytes | None, stream: VirtualStream) -> Awaitable[int]:
        if "read -r up _ </proc/uptime" in command:
            return self._clock_readings(stream)
        if "tail -c +" in command:
            return self._follow_log(stream)
        script = _SCRIPT.search(command)
        if script is None:
            return _fails(127)
        running = self._scripts.begin(script[1], _values(command, stdin), stream.put)
        stream.outlives = running
        return running.ended()

    async def _run(self, command: str, stdin: str | bytes | None) -> tuple[int, str]:
        await asyncio.sleep(_LATENCY_S)
        script = _SCRIPT.search(command)
        match None if script is None else script[1], _values(command, stdin) if script else {}:
            case "inspect.sh", values:
                return 0, inspection(self._sim, self.name, self._clock, values, self._scripts.leases())
            case "events.sh", values:
                return 0, self._event_file.said(int(values["offset"]), int(values["most"]))
            case "command.sh", values:
                return await self._carry_out(values)
            case _:
                return await self._run_command(command)

    async def _run_command(self, command: str) -> tuple[int, str]:
        """Anything but a script."""
        if "nc " in command and command.rstrip().endswith("wait"):
            return await probe(self._sim, self.name, command, self._addresses)
        if command.startswith(("exec sh -c", "true")):  # the scripts put in place
            return 0, ""
        return 127, f"not found: {command[:80]}"

    async def _carry_out(self, values: Mapping[str, str]) -> tuple[int, str]:
        """A command of the inventory."""
        if values.get("start") == START:
            self._sim.start(self.name)
            await asyncio.sleep(_START_S)
        elif values.get("stop") == STOP:
            self._sim.crash(self.name)
        else:
            return 127, f"not found: {values}"
        return 0, ""

    async def _clock_readings(self, stream: VirtualStream) -> int:
        while await stream.typed():
            stream.put(f"{self._clock.now():.4f}")
        return 0

    async def _follow_log(self, stream: VirtualStream) -> int:
        """The last line about the master, the mark, then what comes."""
        past = self._sim.log(self.name)
        last = next((text for _, text in reversed(past) if _MASTER.search(text)), None)
        if last is not None:
            stream.put(f"@rig-past {last}")
        stream.put("@rig-following")
        seen = past[-1][0] if past else -1.0
        while True:
            await asyncio.sleep(_LOG_LOOK_S)
            log = self._sim.log(self.name)
            if not log or log[-1][0] <= seen:
                continue
            for _, text in [line for line in log if line[0] > seen]:
                stream.put(text)
            seen = log[-1][0]


class VirtualStream(Stream):
    """The output of a simulated command."""

    def __init__(
        self, node: VirtualNode, command: str, lines: asyncio.Queue[str | None], deadline: float | None
    ) -> None:
        # Not Stream's own: there is no process behind this one.
        self.node = node.name
        self.command = command[:80]
        self.outlives: RunningScript | None = None  # a fault goes on when the channel closes
        self._lines = lines
        self._until = deadline
        self._typed: asyncio.Queue[str] = asyncio.Queue(_MAX_LINES)
        self._task: asyncio.Task[int] | None = None

    def begin(self, work: Awaitable[int]) -> None:
        self._task = asyncio.ensure_future(self._to_its_end(work))

    async def _to_its_end(self, work: Awaitable[int]) -> int:
        try:
            return await work
        finally:
            self.put(None)

    def put(self, line: str | None) -> None:
        if not self._lines.full():
            self._lines.put_nowait(line)

    async def typed(self) -> str:
        """The next line of stdin; empty at its end."""
        return await self._typed.get()

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self._next()) is not None:
            yield line

    async def wait(self) -> Result:
        assert self._task is not None
        return Result(await self._task, "", "")

    async def write(self, data: bytes) -> None:
        del data
        self._typed.put_nowait("\n")

    def close_stdin(self) -> None:
        self._typed.put_nowait("")

    async def close(self) -> None:
        if self._task is not None and self.outlives is None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _next(self) -> str | None:
        try:
            async with asyncio.timeout_at(self._until):
                return await self._lines.get()
        except TimeoutError as exc:
            raise CommandTimeout(self.node, f"`{self.command}` did not end by its deadline") from exc


async def _fails(status: int) -> int:
    return status


def _values(command: str, stdin: str | bytes | None = None) -> dict[str, str]:
    """The `key=value` words after the script's name, and the lines of its stdin."""
    words = shlex.split(command)
    first = next(index for index, word in enumerate(words) if word.endswith(".sh"))
    lines = (stdin.decode() if isinstance(stdin, bytes) else stdin or "").splitlines()
    pairs = [word.partition("=") for word in [*words[first + 1 :], *lines]]
    return {key: value for key, equals, value in pairs if equals}
