"""`dnctl` of a virtual Mac: pipes for pf's dummynet rules. Loss and bandwidth are enforced by nftables, delay by delay
lines behind it, one for each interface, to which the pipe's mark leads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rig.errors import ClusterError
from rig.lab.embedded.machine.answering import Answer
from rig.lab.hosts.addresses import INTERFACES
from rig.lab.hosts.delay_line import DelayLine
from rig.lab.mac.pf.firewall import Firewall, PfError

BANDWIDTH = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)(bit|Byte)/s")
SCALE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
LOSS_STEPS = 10_000
MARK = 0x7A000000  # plus the pipe's number: on packets that its delay line takes
MOST_DELAY_MS = 10_000
CARDS = (INTERFACES["darwin"].ethernet, INTERFACES["darwin"].thunderbolt)


@dataclass
class Dnctl:
    firewall: Firewall
    shown: dict[int, str] = field(default_factory=dict[int, str])
    lines: dict[int, list[DelayLine]] = field(default_factory=dict[int, list[DelayLine]])

    def run(self, arguments: list[str]) -> Answer:
        words = [word for word in arguments if word not in {"-q", "-f"}]
        match words:
            case ["pipe", number, "config", *settings] if number.isdigit():
                return self._config(int(number), settings)
            case ["pipe", "delete", number] | ["pipe", number, "delete"] if number.isdigit():
                if self.shown.pop(int(number), None) is None:
                    return Answer(1, err=f"dnctl: rule {number} not found\n")
                self._take_away(int(number))
                return Answer(0)
            case ["list"] | ["pipe", "list"] | ["pipe", "show"] | ["show"]:
                return Answer(0, out="".join(f"{number:05}: {text}\n" for number, text in sorted(self.shown.items())))
            case ["flush"]:
                for number in [*self.shown]:
                    del self.shown[number]
                    self._take_away(number)
                return Answer(0)
            case _:
                return Answer(64, err=f"dnctl: not emulated: dnctl {' '.join(arguments)}\n")

    def _config(self, number: int, settings: list[str]) -> Answer:
        if len(settings) % 2:
            return Answer(64, err="dnctl: a value is missing\n")
        given = dict(zip(settings[::2], settings[1::2], strict=True))
        effects: list[str] = []
        try:
            delay_s = _delay_s(given.pop("delay", "0"))
            for key, value in given.items():
                effects += _effect(key, value)
        except ValueError as error:
            return Answer(64, err=f"dnctl: {error}\n")
        self._take_away(number)
        if delay_s > 0:
            try:
                self._lay(number, delay_s)
            except (ClusterError, PfError) as error:
                return Answer(64, err=f"dnctl: {error}\n")
            effects.append(f"meta mark set {MARK + number:#x}")
        self.shown[number] = " ".join(settings)
        self.firewall.pipes[number] = effects
        self.firewall.enforce()
        return Answer(0)

    def _lay(self, number: int, delay_s: float) -> None:
        for ruleset in (self.firewall.main, *self.firewall.anchors.values()):
            self.firewall.refuse_inward(ruleset, {number})
        self.firewall.delaying.add(number)
        lines = self.lines[number] = []
        for card in CARDS:
            line = DelayLine(f"pipe{number}-{card}", card, delay_s)
            lines.append(line)
            line.take(f"meta mark {MARK + number:#x}")

    def _take_away(self, number: int) -> None:
        self.firewall.pipes.pop(number, None)
        self.firewall.delaying.discard(number)
        self.firewall.enforce()
        for line in self.lines.pop(number, []):
            line.close()


def _delay_s(value: str) -> float:
    """Raises ValueError."""
    if not 0 <= float(value) <= MOST_DELAY_MS:
        raise ValueError(f"delay must be between 0 and {MOST_DELAY_MS}")
    return float(value) / 1000


def _effect(key: str, value: str) -> list[str]:
    """As nft statements. Raises ValueError for what is not dummynet's, or cannot be enforced here."""
    if key == "plr":
        loss = float(value)
        if not 0 <= loss <= 1:
            raise ValueError("plr must be between 0 and 1")
        if loss in {0, 1}:
            return ["drop"] if loss else []
        return [f"numgen random mod {LOSS_STEPS} < {round(loss * (LOSS_STEPS - 1))} drop"]
    if key == "bw":
        parsed = BANDWIDTH.fullmatch(value)
        if parsed is None:
            raise ValueError(f"unrecognised bandwidth {value}")
        bytes_a_second = float(parsed[1]) * SCALE[parsed[2]] / (8 if parsed[3] == "bit" else 1)
        return [f"limit rate over {max(1, round(bytes_a_second))} bytes/second burst 16384 bytes drop"]
    raise ValueError(f"unrecognised option {key}")
