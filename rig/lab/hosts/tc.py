"""`tc` of a Linux node on a kernel without netem: what the node scripts ask of netem is done by delay lines.

Emulated: a `prio` queue as the root of a device, `netem delay` as one of its classes, u32 filters that lead the packets
to an address there, and showing these and deleting the root. Everything else is the real tc's answer, which knows
nothing of them. Where the kernel has netem, the node has the real one (`kernel_delays`).
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from dataclasses import dataclass, field

from rig.errors import ClusterError
from rig.lab.embedded.machine.answering import Answer
from rig.lab.embedded.machine.nft import CommandError
from rig.lab.embedded.machine.real import real
from rig.lab.hosts.delay_line import DelayLine

TC = "/usr/sbin/tc"
HANDLE = re.compile(r"([0-9a-f]{1,4}):")
DELAY = re.compile(r"(\d+)ms")
EXISTS = Answer(2, err="Error: Exclusivity flag on, cannot modify.\n")
MISSING = Answer(2, err="Error: Cannot find specified qdisc on specified device.\n")
FAMILIES = {("ip", "ip", "32"): "ip", ("ipv6", "ip6", "128"): "ip6"}  # protocol, match, prefix → as nft says it
PRIOMAP = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"


def kernel_delays() -> bool:
    """Whether this kernel has what the node scripts use: asked of it, on the loopback of this network namespace."""
    for words in ("root handle 1: prio bands 4", "parent 1:4 netem delay 1ms"):
        done = subprocess.run([TC, "qdisc", "add", "dev", "lo", *words.split()], capture_output=True, check=False)
        if done.returncode != 0:
            break
    else:
        words = ""
    subprocess.run([TC, "qdisc", "del", "dev", "lo", "root"], capture_output=True, check=False)
    return words == ""


@dataclass
class _Queue:
    """A device's root. `class_`: the one that delays, by `line`."""

    handle: str
    bands: int
    class_: str = ""
    delay_ms: int = 0
    line: DelayLine | None = None
    priorities: dict[str, str] = field(default_factory=dict[str, str])  # of filters: to their protocol
    places: list[str] = field(default_factory=list[str])  # where what is delayed goes to


@dataclass
class Tc:
    queues: dict[str, _Queue] = field(default_factory=dict[str, _Queue])

    async def run(self, arguments: list[str], folder: str) -> Answer:
        """The node's `tc`. Raises CommandError for what is not emulated."""
        del folder
        try:
            answer = await asyncio.to_thread(self._answer, arguments)
        except ClusterError as error:
            return Answer(2, err=f"Error: {error.message}\n")
        return await real(TC, *arguments) if answer is None else answer

    def _answer(self, arguments: list[str]) -> Answer | None:
        """None: the real one answers."""
        ours = next((device for device in self.queues if device in arguments), "")
        answer: Answer | None = None
        match arguments:
            case ["qdisc", "add", "dev", device, "root", "handle", handle, "prio", "bands", bands]:
                answer = EXISTS if ours else Answer(0)
                self.queues.setdefault(device, _Queue(_handle(handle), int(bands)))
            case ["qdisc", "add", "dev", _, "parent", parent, "netem", "delay", delay] if ours:
                answer = self._delay(ours, self.queues[ours], parent, delay)
            case ["filter", "add", "dev", _, "parent", parent, *rest] if ours:
                answer = _filter(self.queues[ours], _handle(parent), rest)
            case ["qdisc", "del", "dev", _, "root", "handle", handle] if ours:
                answer = self._delete(ours, _handle(handle))
            case ["qdisc", "show", "dev", _, *_] if ours:
                answer = Answer(0, out=_show(self.queues[ours], counts=False))
            case ["filter", "show", "dev", _] if ours:
                lines = [f"filter {place} flowid {self.queues[ours].class_}\n" for place in self.queues[ours].places]
                answer = Answer(0, out="".join(lines))
            case ["-s", "qdisc", "show", "dev", _, *_] if ours:
                answer = Answer(0, out=_show(self.queues[ours], counts=True))
            case _ if ours or "netem" in arguments:
                raise CommandError(f"tc: not emulated: tc {' '.join(arguments)}")
            case _:
                pass
        return answer

    def _delay(self, device: str, queue: _Queue, parent: str, delay: str) -> Answer:
        handle, _, band = parent.partition(":")
        milliseconds = DELAY.fullmatch(delay)
        if milliseconds is None:
            raise CommandError(f"tc: not emulated: netem delay {delay}")
        if handle != queue.handle or not band.isdigit() or not 1 <= int(band) <= queue.bands:
            return Answer(2, err="Error: Specified class not found.\n")
        if queue.line is not None:
            return EXISTS
        queue.class_, queue.delay_ms = parent, int(milliseconds[1])
        queue.line = DelayLine(f"netem-{device}", device, queue.delay_ms / 1000)
        return Answer(0)

    def _delete(self, device: str, handle: str) -> Answer:
        queue = self.queues[device]
        if handle != queue.handle:
            return MISSING
        del self.queues[device]
        if queue.line is not None:
            queue.line.close()
        return Answer(0)


def _handle(word: str) -> str:
    found = HANDLE.fullmatch(word)
    if found is None:
        raise CommandError(f'tc: argument "{word}" is wrong: invalid qdisc ID')
    return found[1]


def _filter(queue: _Queue, parent: str, rest: list[str]) -> Answer:
    match rest:
        case ["protocol", protocol, "prio", priority, "u32", "match", match, "dst", place, "flowid", class_]:
            address, _, prefix = place.partition("/")
            family = FAMILIES.get((protocol, match, prefix))
        case _:
            family = protocol = priority = address = class_ = None
    if family is None or class_ != queue.class_ or queue.line is None:
        raise CommandError(f"tc: not emulated: tc filter add … {' '.join(rest)}")
    if parent != queue.handle:
        return MISSING
    if queue.priorities.setdefault(str(priority), str(protocol)) != protocol:
        return Answer(2, err="Error: Filter with specified priority/protocol not found.\n")
    queue.places.append(f"{family} daddr {address}")
    queue.line.take(queue.places[-1])
    return Answer(0)


def _show(queue: _Queue, *, counts: bool) -> str:
    def sent(packets: int) -> str:
        lines = f" Sent 0 bytes {packets} pkt (dropped 0, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n"
        return lines if counts else ""

    text = f"qdisc prio {queue.handle}: root refcnt 2 bands {queue.bands} priomap {PRIOMAP}\n{sent(0)}"
    if queue.line is not None:
        text += (
            f"qdisc netem 8001: parent {queue.class_} limit 1000 delay {queue.delay_ms}ms\n{sent(queue.line.packets)}"
        )
    return text
