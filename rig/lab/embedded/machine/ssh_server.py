"""The node's SSH server: real commands in a real shell, and the truth about how they ended.

As with OpenSSH without a terminal: a command runs in a session of its own, outlives the connection that started it (its
pipes close, it is not killed), gets the signals that the client sends, and its exit status or signal is reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import cast

import asyncssh
import psutil

from rig.lab.embedded.machine.environment import session_environment
from rig.lab.embedded.reap import record_session
from rig.lab.embedded.settings import NodeSettings
from rig.lab.ledger import Ledger, ProcessExited, ProcessStarted

MAX_SESSIONS = 64
SHELL = "/bin/sh"
STDERR = 1  # SSH_EXTENDED_DATA_STDERR


class _Command(asyncio.SubprocessProtocol):
    """The process behind a session: its output goes to the channel for as long as there is one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)  # uvloop's are no subclasses

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.session.output(fd, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended and nobody holds its output open any more."""
        self.session.ended()


class Session(asyncssh.SSHServerSession[bytes]):
    def __init__(self, server: NodeSshServer) -> None:
        self.server = server
        self.channel: asyncssh.SSHServerChannel[bytes] | None = None
        self.command: str | None = None
        self._process: asyncio.SubprocessTransport | None = None
        self._before_start: list[bytes] = []
        self._input_ended = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self.channel = chan

    def exec_requested(self, command: str) -> bool:
        self.command = command
        return self.server.admit(self)

    def shell_requested(self) -> bool:
        return self.server.admit(self)

    def session_started(self) -> None:
        self._task = asyncio.create_task(self._start())

    async def _start(self) -> None:
        arguments = [SHELL] if self.command is None else [SHELL, "-c", self.command]
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Command(self),
                *arguments,
                cwd=self.server.settings.home,
                env=session_environment(self.server.settings),
                start_new_session=True,
            )
        except OSError as error:
            if self.channel is not None:
                self.channel.write_stderr(f"{error}\n".encode())
                self.channel.exit(127)
            return
        self._process = transport
        self.server.started(transport.get_pid(), self.command or "shell")
        for data in self._before_start:
            self.data_received(data, None)
        self._before_start.clear()
        if self._input_ended:
            self.eof_received()
        if self.channel is None:  # the connection was lost meanwhile
            self._close_pipes()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        del datatype
        pipe = self._pipe(0)
        if self._process is None:
            self._before_start.append(data)
        elif pipe is not None and not pipe.is_closing():
            cast("asyncio.WriteTransport", pipe).write(data)

    def eof_received(self) -> bool:
        self._input_ended = True
        pipe = self._pipe(0)
        if pipe is not None:
            pipe.close()
        return True

    def signal_received(self, signal: str) -> None:
        if self._process is not None and self._process.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError, AttributeError):
                os.killpg(self._process.get_pid(), _number(signal))

    def pause_writing(self) -> None:
        for fd in (1, 2):
            pipe = self._pipe(fd)
            if pipe is not None and not pipe.is_closing():
                cast("asyncio.ReadTransport", pipe).pause_reading()

    def resume_writing(self) -> None:
        for fd in (1, 2):
            pipe = self._pipe(fd)
            if pipe is not None and not pipe.is_closing():
                cast("asyncio.ReadTransport", pipe).resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.channel = None
        self._close_pipes()

    def output(self, fd: int, data: bytes) -> None:
        if self.channel is not None and not self.channel.is_closing():
            self.channel.write(data, STDERR if fd == 2 else None)  # pyright: ignore[reportUnknownMemberType] (loosely typed there)

    def ended(self) -> None:
        assert self._process is not None
        status = self._process.get_returncode()
        assert status is not None
        self.server.ended(self, self._process.get_pid(), status)
        if self.channel is None or self.channel.is_closing():
            return
        if status < 0:
            name = signal.Signals(-status).name.removeprefix("SIG")
            self.channel.exit_with_signal(name, core_dumped=False, msg="", lang="")
        else:
            self.channel.exit(status)

    def _pipe(self, fd: int) -> asyncio.BaseTransport | None:
        return None if self._process is None else self._process.get_pipe_transport(fd)

    def _close_pipes(self) -> None:
        for fd in (0, 1, 2):
            pipe = self._pipe(fd)
            if pipe is not None:
                pipe.close()


def _number(name: str) -> signal.Signals:
    return signal.Signals[f"SIG{name}"]


class NodeSshServer:
    """Admits the cluster's own client key only, and at most `MAX_SESSIONS` sessions at a time."""

    def __init__(self, settings: NodeSettings, ledger: Ledger) -> None:
        self.settings = settings
        self.ledger = ledger
        self.sessions: set[Session] = set()

    async def listen(self) -> asyncssh.SSHAcceptor:
        def session_server() -> asyncssh.SSHServer:
            return _Server(lambda: Session(self))

        return await asyncssh.create_server(
            session_server,
            "127.0.0.1",
            self.settings.ssh_port,
            server_host_keys=[self.settings.host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(self.settings.client_key + "\n"),
            encoding=None,
            allow_pty=False,
            agent_forwarding=False,
            x11_forwarding=False,
            compression_algs=None,
            login_timeout=10,
            reuse_address=True,
        )

    def admit(self, session: Session) -> bool:
        if len(self.sessions) >= MAX_SESSIONS:
            return False
        self.sessions.add(session)
        return True

    def started(self, pid: int, command: str) -> None:
        record_session(self.settings.folder, pid)
        with contextlib.suppress(psutil.Error):
            start = psutil.Process(pid).create_time()
            self.ledger.write(
                ProcessStarted(
                    t=self.ledger.now(),
                    node=self.settings.name,
                    role="session",
                    pid=pid,
                    start=start,
                    detail=command[:200],
                )
            )

    def ended(self, session: Session, pid: int, status: int) -> None:
        self.sessions.discard(session)
        self.ledger.write(
            ProcessExited(t=self.ledger.now(), node=self.settings.name, role="session", pid=pid, status=status)
        )


class _Server(asyncssh.SSHServer):
    def __init__(self, new_session: Callable[[], Session]) -> None:
        self._new_session = new_session

    def session_requested(self) -> Session:
        return self._new_session()

    def begin_auth(self, username: str) -> bool:
        return True
