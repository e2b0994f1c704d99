"""The node scripts: what each is called with, as a command line, and what its events say. Pure."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from rig.config.inventory import Node
from rig.config.stock import scripts_folder
from rig.errors import ConfigError

EVENT_MARK = "@rig"
_KEYS = re.compile(r"^parse_args '([a-z_ ]+)'", re.MULTILINE)


@dataclass(frozen=True)
class Bundle:
    """The `*.sh` of a folder: names, contents, and the name of the folder that holds them on a node."""

    files: dict[str, bytes]
    folder: str

    @staticmethod
    def of(folder: Path) -> Bundle:
        files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.sh"))}
        if not files:
            raise ConfigError("there are no node scripts (*.sh) here", file=str(folder), remedy="install the rig again")
        digest = hashlib.sha256()
        for name, data in files.items():
            digest.update(f"{name} {len(data)}\n".encode() + data)
        return Bundle(files, f"scripts-{digest.hexdigest()[:16]}")

    def keys(self, script: str) -> frozenset[str]:
        """The keys that a script takes, as it says itself. Raises ConfigError when there is no such script."""
        if script not in self.files:
            raise ConfigError(f"there is no node script {script}", file=str(scripts_folder()))
        said = _KEYS.search(self.files[script].decode())
        assert said is not None, f"{script} does not say which keys it takes"
        return frozenset(said[1].split())

    def sums(self) -> str:
        """Checksum, size and name of each file, as `cksum *.sh` prints them, on one line."""
        return " ".join(f"{cksum(data)} {len(data)} {name}" for name, data in self.files.items())

    def archive(self) -> bytes:
        """The files as a tar archive."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in self.files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o500
                tar.addfile(entry, io.BytesIO(data))
        return out.getvalue()


@lru_cache(maxsize=1)
def stock_bundle() -> Bundle:
    """The scripts that come with the rig."""
    return Bundle.of(scripts_folder())


@dataclass(frozen=True)
class ScriptEvent:
    """One line a script says: what, when on the node's clock (s), and its `key=value` fields."""

    event: str
    node_t: float
    fields: dict[str, str] = field(default_factory=dict[str, str])
    heard_s: float | None = None  # when it arrived, on the event loop's clock; None when it was read later


def parse_event(line: str) -> ScriptEvent | None:
    """`@rig<TAB>EVENT<TAB>NODE_T<TAB>key=value…` → event; anything else, a torn line included, → None."""
    mark, *parts = line.rstrip("\r\n").split("\t")
    if mark != EVENT_MARK or len(parts) < 2 or not parts[0]:
        return None
    try:
        node_t = float(parts[1])
    except ValueError:
        return None
    pairs = [part.partition("=") for part in parts[2:]]
    return ScriptEvent(parts[0], node_t, {key: value for key, equals, value in pairs if equals})


COMMANDS: Final = frozenset({"start", "stop", "hold_cmd", "release_cmd"})
"""Values that may hold a secret: every user of a machine can read the arguments of its processes, not their stdin."""


def script_command(node: Node, script: str, values: Mapping[str, str], bundle: Bundle | None = None) -> str:
    """The command line for a script of the uploaded bundle; every value is quoted, empty ones are left out.

    The values of `process_values` that the script knows are added. COMMANDS are not in the line: the script must be
    given `script_stdin` of the same values. Raises ConfigError for a script, or a key, that there is not.
    """
    scripts = bundle or stock_bundle()
    keys = scripts.keys(script)
    if unknown := values.keys() - keys:
        raise ConfigError(f"{script} knows no {', '.join(sorted(unknown))}", file=str(scripts_folder()))
    usual = {key: value for key, value in process_values(node).items() if key in keys}
    given = {key: value for key, value in (usual | dict(values)).items() if value != ""}
    words = [f"{key}={value}" for key, value in given.items() if key not in COMMANDS]
    arguments = " ".join(map(q, words if script_stdin(values) is None else ["-", *words]))
    return on_path(node, f"exec sh {q(f'{node.rig_dir}/{scripts.folder}/{script}')} {arguments}")


def on_path(node: Node, command: str) -> str:
    """The command under the PATH of the inventory."""
    return command if node.path is None else f"PATH={q(node.path)}; export PATH; {command}"


def called(script: str, *arguments: str) -> str:
    """A command line for a script that is given as text, with $1, $2, …"""
    return f"exec sh -c {q(script)} sh {' '.join(map(q, arguments))}"


def script_stdin(values: Mapping[str, str]) -> bytes | None:
    """What a script is to read of its values; None: nothing, all are on its command line. Values are single lines."""
    lines = [f"{key}={value}\n" for key, value in values.items() if value != "" and key in COMMANDS]
    return "".join([*lines, ".\n"]).encode() if lines else None


def process_values(node: Node) -> dict[str, str]:
    """The arguments that every script takes which has to do with the target's processes."""
    process = node.process
    return {
        "rig_dir": node.rig_dir,
        "home": process.home,
        "pidfile": process.pid_path,
        "match": process.match,
        "sudo": "1" if node.sudo else "0",
    }


def cksum(data: bytes) -> int:
    """The POSIX `cksum` of some bytes."""
    crc = 0
    size = len(data)
    length = b""
    while size:
        length += bytes([size & 0xFF])
        size >>= 8
    for byte in data + length:
        crc = (crc << 8) & 0xFFFFFFFF ^ _CRC[(crc >> 24) ^ byte]
    return ~crc & 0xFFFFFFFF


def q(text: str) -> str:
    return shlex.quote(text)


def _crc_table() -> list[int]:
    table: list[int] = []
    for index in range(256):
        crc = index << 24
        for _ in range(8):
            crc = (crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1
        table.append(crc & 0xFFFFFFFF)
    return table


_CRC = _crc_table()
