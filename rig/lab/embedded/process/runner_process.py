"""A runner process, and the resource tracker: real and light, with the command lines that exo's have.

Started as `python -S -E -B -c "… from rig.lab.embedded.process.runner_process import spawn_main;
spawn_main(tracker_fd=5, pipe_handle=7)" --multiprocessing-fork`.

It talks to its main over a socket in lines of tab-separated words: commands in
(`KIND TASK PROMPT_TOKENS MAX_TOKENS ANSWER`), reports out (`KIND TASK N TOTAL FINISH_REASON TEXT`). Only modules that
import fast are used.

It ends when its lifeline ends (its machine is gone), and with its main unless orphans are wanted: then it stays, as a
real runner whose main was SIGKILLed does, until somebody kills it.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from time import monotonic

from rig.lab.exo.runner import RunnerLogic, RunnerTimes

MAX_OUT_BYTES = 65536  # reports that main has not read: beyond this the runner waits, as on a full pipe


class Runner:
    """`commands` is the socket to main, `lifeline` the pipe of the machine, `ring` the ring port, or the path of the
    socket that stands for it.
    """

    def __init__(
        self, commands: int, lifeline: int, times: RunnerTimes, *, ring: str | None, ends_with_main: bool, spins: bool
    ) -> None:
        self.commands = commands
        self.lifeline = lifeline
        self.ends_with_main = ends_with_main
        self.spins = spins  # with the defect of that name
        self._asked = False
        self.logic = RunnerLogic(times, monotonic())
        self.orphaned = False
        self._in = b""
        self._out = bytearray()
        self._ring = None if ring is None else _listen(ring)
        os.set_blocking(commands, False)
        self._poll = select.poll()
        self._poll.register(lifeline, select.POLLIN)
        self._poll.register(commands, select.POLLIN)
        if self._ring is not None:
            self._poll.register(self._ring.fileno(), select.POLLIN)

    def run(self) -> None:
        while True:
            for descriptor, _ in self._poll.poll(self._timeout_ms()):
                if descriptor == self.lifeline:
                    return
                if descriptor == self.commands:
                    self._on_commands()
                elif self._ring is not None:
                    self._ring.accept()[0].close()
            if self.orphaned and self.ends_with_main:
                return
            if not self.orphaned and len(self._out) < MAX_OUT_BYTES:
                for report in self.logic.tick(monotonic()):
                    line = "\t".join(
                        (
                            report.kind,
                            report.task_id,
                            str(report.n),
                            str(report.total),
                            report.finish_reason,
                            report.text,
                        )
                    )
                    self._out += line.encode() + b"\n"
            self._flush()

    def _timeout_ms(self) -> float | None:
        if self.spins and self._asked:
            return 0.0
        deadline = self.logic.next_deadline()
        if self.orphaned or deadline is None or len(self._out) >= MAX_OUT_BYTES:
            return None
        return max(0.0, (deadline - monotonic()) * 1000)

    def _on_commands(self) -> None:
        try:
            data = os.read(self.commands, 65536)
        except BlockingIOError:
            data = None
        except OSError:
            data = b""
        if data == b"":
            self.orphaned = True
            self._poll.unregister(self.commands)
            return
        *lines, self._in = (self._in + (data or b"")).split(b"\n")
        for line in lines:
            kind, task, prompt, limit, answer = line.decode().split("\t")
            self._asked = self._asked or kind == "generate"
            self.logic.command(monotonic(), kind, task, int(prompt), int(limit), int(answer))

    def _flush(self) -> None:
        if self.orphaned:
            self._out.clear()
            return
        if self._out:
            try:
                del self._out[: os.write(self.commands, self._out)]
            except BlockingIOError:
                pass
            except OSError:
                self.orphaned = True
                self._poll.unregister(self.commands)
                return
        events = select.POLLIN | (select.POLLOUT if self._out else 0)
        self._poll.modify(self.commands, events)


def _listen(path: str) -> socket.socket:
    if path.isdigit():  # the node has a network of its own
        real = socket.socket()
        real.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        real.bind(("", int(path)))
        real.listen(16)
        return real
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(16)
    return listener


def spawn_main(*, tracker_fd: int, pipe_handle: int) -> None:
    """Runner: its parameters are the arguments after the marker, as `key=value`."""
    del tracker_fd  # named as in a real runner's command line
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    numbers = [float(number) for number in given["times"].split(",")]
    times = RunnerTimes(*numbers[:6], layers=int(numbers[6]))
    Runner(
        pipe_handle,
        int(given["lifeline"]),
        times,
        ring=given.get("ring"),
        ends_with_main=given["orphan"] == "0",
        spins=given["spin"] == "1",
    ).run()


def tracker_main(pipe_handle: int) -> None:
    """Resource tracker: does nothing, and ends as a runner does."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    lifeline = int(given["lifeline"])
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(pipe_handle, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == lifeline or given["orphan"] == "0":
                return
            poll.unregister(descriptor)
