"""`ps` as BSD has it, over the processes of this process namespace."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rig.lab.embedded.machine.answering import Answer

TICKS = os.sysconf("SC_CLK_TCK")
WIDTH, WIDE = 79, 131  # of a line when the output is no terminal; `-w`; `-ww` is unlimited
FLAGS = "aAcefjlmMrSTuvwx"


class Row(NamedTuple):
    pid: int
    ppid: int
    pgid: int
    state: str
    started: float  # Unix time
    cpu_s: float
    rss_kb: int
    vsz_kb: int
    command: str
    name: str


FIELDS: dict[str, tuple[str, Callable[[Row], str]]] = {
    "pid": ("PID", lambda row: str(row.pid)),
    "ppid": ("PPID", lambda row: str(row.ppid)),
    "pgid": ("PGID", lambda row: str(row.pgid)),
    "state": ("STAT", lambda row: row.state),
    "lstart": ("STARTED", lambda row: time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(row.started))),
    "command": ("COMMAND", lambda row: row.command),
    "comm": ("COMM", lambda row: row.command.partition(" ")[0]),
    "ucomm": ("UCOMM", lambda row: row.name),
    "user": ("USER", lambda _: "root"),
    "uid": ("UID", lambda _: "0"),
    "tty": ("TTY", lambda _: "??"),
    "rss": ("RSS", lambda row: str(row.rss_kb)),
    "vsz": ("VSZ", lambda row: str(row.vsz_kb)),
    "pcpu": ("%CPU", lambda row: f"{100 * row.cpu_s / max(1.0, time.time() - row.started):.1f}"),
    "time": ("TIME", lambda row: f"{int(row.cpu_s // 60)}:{row.cpu_s % 60:05.2f}"),
}
ALIASES = {"stat": "state", "args": "command", "%cpu": "pcpu", "cputime": "time", "vsize": "vsz", "tt": "tty"}


class _Asked:
    """What the options ask for. `pids` None: of everybody."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []  # (name, header)
        self.pids: set[int] | None = None
        self.everybody = False
        self.wide = 0

    @property
    def width(self) -> int:
        """Of a line; 0: no limit."""
        return WIDTH if self.wide == 0 else WIDE if self.wide == 1 else 0

    def take(self, letter: str, value: str) -> None:
        """One option. Raises ValueError for what BSD's ps has not, or is not emulated."""
        if letter == "o":
            self.fields += _fields(value)
        elif letter == "p":
            self.pids = (self.pids if self.pids is not None else set[int]()) | _pids(value)
        elif letter == "w":
            self.wide += 1
        elif letter in FLAGS:
            self.everybody = self.everybody or letter in "aAex"
        else:
            raise ValueError(f"illegal option -- {letter}")


def ps(arguments: list[str], zone: str = "UTC0") -> Answer:
    """`zone`: the TZ of who asks. Status 1 when a named process is not there, as on a Mac."""
    try:
        asked = _parse(arguments)
    except ValueError as error:
        return Answer(1, err=f"ps: {error}\n")
    rows = [row for row in processes() if asked.pids is None or row.pid in asked.pids]
    with _in_zone(zone):
        table = [[FIELDS[name][1](row) for name, _ in asked.fields] for row in rows]
    headers = [header for _, header in asked.fields]
    shown = ([headers] if any(headers) else []) + table
    widths = [max((len(line[column]) for line in shown), default=0) for column in range(len(headers))]
    lines = [
        "".join(_pad(word, width, name) for word, width, (name, _) in zip(line, widths, asked.fields, strict=True))
        for line in shown
    ]
    text = "".join(f"{line.rstrip()[: asked.width or None]}\n" for line in lines)
    return Answer(0 if rows else 1, out=text)


@contextmanager
def _in_zone(zone: str) -> Generator[None]:
    """The local time of this process is that of `zone` meanwhile."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def _pad(word: str, width: int, name: str) -> str:
    return (
        f"{word} "
        if name == "command"
        else f"{word:<{width}} "
        if name in {"lstart", "state", "user"}
        else f"{word:>{width}} "
    )


def _parse(arguments: list[str]) -> _Asked:
    asked = _Asked()
    words = list(arguments)
    if words and not words[0].startswith("-"):
        words[0] = f"-{words[0]}"  # `ps ax`
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            raise ValueError("illegal option -- -")
        if not word.startswith("-") or len(word) < 2:
            raise ValueError(f"not emulated: {word}")
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            value = ""
            if letter in "op":
                value, letters = letters or (words.pop(0) if words else ""), ""
            asked.take(letter, value)
    if not asked.fields:
        asked.fields = [(name, FIELDS[name][0]) for name in ("pid", "tty", "time", "command")]
    if asked.pids is None and not asked.everybody:
        asked.pids = set()
    return asked


def _fields(value: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    head, equals, header = value.partition("=")
    names = head.replace(",", " ").split()
    for position, name in enumerate(names):
        real = ALIASES.get(name, name)
        if real not in FIELDS:
            raise ValueError(f"{name}: keyword not found")
        last = position == len(names) - 1
        found.append((real, header if equals and last else FIELDS[real][0]))
    if not found:
        raise ValueError("no valid keywords")
    return found


def _pids(value: str) -> set[int]:
    words = value.replace(",", " ").split()
    if not words or not all(word.isdigit() for word in words):
        raise ValueError(f"illegal process id: {value}")
    return {int(word) for word in words}


def processes() -> list[Row]:
    with Path("/proc/stat").open() as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    rows = [_row(int(entry), boot) for entry in os.listdir("/proc") if entry.isdigit()]
    return sorted((row for row in rows if row is not None), key=lambda row: row.pid)


def _visible(text: str) -> str:
    """A line stays a line: what no terminal shows is written as `vis(3)` writes it, a newline as `\\012`."""
    return "".join(letter if letter.isprintable() else f"\\{ord(letter):03o}" for letter in text)


def _row(pid: int, boot: int) -> Row | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    words = text[text.rindex(")") + 2 :].split()
    state = {"D": "U", "t": "T", "X": "Z"}.get(words[0], words[0]) + ("s" if int(words[3]) == pid else "")
    return Row(
        pid=pid,
        ppid=int(words[1]),
        pgid=int(words[2]),
        state=state,
        started=boot + int(words[19]) / TICKS,
        cpu_s=(int(words[11]) + int(words[12])) / TICKS,
        rss_kb=int(words[21]) * 4,
        vsz_kb=int(words[20]) // 1024,
        command=_visible(arguments.strip(" ")) or f"({name})",
        name=name,
    )
