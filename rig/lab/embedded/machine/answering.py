"""How a machine answers the commands in its node's `bin/`: one request a connection, over a unix socket.

A request is the command's name, its working folder and its arguments, separated by NUL, ended by `\\n NUL \\n`. An
answer is the exit status, what to print on stdout and on stderr, separated by NUL; or `exec` and the command line of
the real command to become.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from rig.lab.embedded.machine.ask import END
from rig.lab.embedded.machine.nft import CommandError

MAX_REQUEST = 65536


class Answer(NamedTuple):
    status: int
    out: str = ""
    err: str = ""


class Become(NamedTuple):
    """The shim becomes the real command."""

    words: list[str]


Handler: TypeAlias = Callable[[list[str], str], Awaitable[Answer | Become]]


class Answering:
    """`handlers` by the name of the command: called with the arguments and the working folder. A CommandError of one is
    what the command prints on stderr, with status 1.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    async def serve(self, control_socket: str) -> asyncio.Server:
        return await asyncio.start_unix_server(self.handle, control_socket, limit=MAX_REQUEST)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(END)
            name, folder, *arguments = request.removesuffix(END).decode("utf-8", "surrogateescape").split("\0")
            writer.write(_encode(await self._run(name, arguments, folder)))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, OSError):
            pass  # a shim that went away, or no shim of ours
        finally:
            writer.close()

    async def _run(self, name: str, arguments: list[str], folder: str) -> Answer | Become:
        handler = self._handlers.get(name)
        if handler is None:
            return Answer(127, err=f"{name}: not a command of this node\n")
        try:
            return await handler(arguments, folder)
        except CommandError as error:
            return Answer(1, err=f"{error}\n")


def _encode(answer: Answer | Become) -> bytes:
    parts = ["exec", *answer.words] if isinstance(answer, Become) else [str(answer.status), answer.out, answer.err]
    return "\0".join(parts).encode("utf-8", "surrogateescape")
