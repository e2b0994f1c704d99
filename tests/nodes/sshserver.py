"""An SSH server as a process of its own, for tests: runs what it is told in a real shell, as OpenSSH would.

`python sshserver.py FOLDER PORT [HOST]` serves on HOST (default 127.0.0.1) with the host key FOLDER/host_key and
accepts FOLDER/client_key.
Like OpenSSH without a terminal it does not end a command when the connection goes. Prints `ready PORT` when it listens.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncssh


async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    if "close without a status" in (process.command or ""):
        process.close()
        return
    environment = {**os.environ, "SSH_CONNECTION": "127.0.0.1 40000 127.0.0.1 22", "HOME": str(Path.cwd())}
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    pumps = [
        asyncio.create_task(pump(child.stdout, process.stdout)),
        asyncio.create_task(pump(child.stderr, process.stderr)),
    ]
    feeding = asyncio.create_task(feed(process, child))
    status = await child.wait()
    await asyncio.gather(*pumps)
    feeding.cancel()
    try:
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)
    except (OSError, asyncssh.Error):
        pass  # the client has gone


async def pump(source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[bytes]) -> None:
    """Child to client. When the client has gone the pipe is closed, as sshd closes it: the child sees SIGPIPE."""
    assert source is not None
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except (OSError, asyncssh.Error):
        transport = getattr(source, "_transport", None)
        if transport is not None:
            transport.close()


async def feed(process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    stdin = child.stdin
    assert stdin is not None
    try:
        while data := await process.stdin.read(65536):
            stdin.write(data)
            await stdin.drain()
    except (OSError, asyncssh.Error):
        pass
    stdin.close()


async def main(folder: Path, port: int, host: str) -> None:
    server = await asyncssh.listen(
        host,
        port,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "client_key.pub"),
        process_factory=serve,
        encoding=None,
        reuse_address=True,
    )
    print("ready", server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # ends with the test that started it
    os._exit(0)


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"))
