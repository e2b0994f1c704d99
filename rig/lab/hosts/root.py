"""The files of a node: the machine's own, with a layer of memory above them that belongs to the node alone.

What a session on the node writes (/etc, /var, /Library, …) stays in that layer, outlives a reboot of the node and goes
with the node. The node's folder and the sockets of its cluster are the same files inside and outside. On a virtual Mac
the layer also holds the commands of macOS and lacks what macOS lacks; `/proc` is empty there.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

import rig
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts.switch import run_command

REPOSITORY = Path(rig.__file__).parent.parent


def tree(settings: NodeSettings) -> Path:
    """What a session on the node sees as `/`."""
    return Path(settings.folder) / "root" / "tree"


def boot_id_file(settings: NodeSettings) -> Path:
    return Path(settings.folder) / "boot_id"


def new_boot_id(settings: NodeSettings) -> None:
    boot_id_file(settings).write_text(f"{uuid.uuid4()}\n")


def mount_root(settings: NodeSettings) -> None:
    """Once, in the node's mount namespace. Raises ClusterError."""
    base = Path(settings.folder) / "root"
    base.mkdir(exist_ok=True)
    run_command("mount", "--make-rprivate", "/")
    run_command("mount", "-t", "tmpfs", "-o", "mode=755,size=256m", "rig", str(base))
    for name in ("upper", "work", "tree"):
        (base / name).mkdir(mode=0o755)
    layers = f"lowerdir=/,upperdir={base}/upper,workdir={base}/work"
    run_command("mount", "-t", "overlay", "-o", layers, "rig", str(tree(settings)))
    _accounts(tree(settings))
    (tree(settings) / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{settings.ipv4} {settings.name}\n")


def _accounts(root: Path) -> None:
    """root's shell is sh, and its password is no reason for sshd to refuse a key."""
    lines = (root / "etc" / "passwd").read_text().splitlines()
    _replace(root / "etc" / "passwd", [_root_line(line, 6, "/bin/sh") for line in lines], 0o644)
    lines = (root / "etc" / "shadow").read_text().splitlines()
    _replace(root / "etc" / "shadow", [_root_line(line, 1, "*") for line in lines], 0o600)


def _root_line(line: str, field: int, value: str) -> str:
    words = line.split(":")
    if words[0] == "root":
        words[field] = value
    return ":".join(words)


def _replace(path: Path, lines: list[str], mode: int) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(mode)


def mount_boot(settings: NodeSettings) -> None:
    """At each boot, in the mount and process namespaces of that boot: /proc, and what does not outlive it."""
    root = tree(settings)
    run_command("mount", "-t", "proc", "proc", "/proc")
    for name in ("run", "tmp"):
        run_command("mount", "-t", "tmpfs", "-o", "mode=1777,size=64m", "rig", str(root / name))
    run_command("mount", "--rbind", "/dev", str(root / "dev"))
    if settings.system == "linux":
        run_command("mount", "-t", "proc", "proc", str(root / "proc"))
        boot_id = str(root / "proc/sys/kernel/random/boot_id")
        run_command("mount", "--bind", str(boot_id_file(settings)), boot_id)
        run_command("mount", "-t", "sysfs", "-o", "ro", "sysfs", str(root / "sys"))
    else:
        for name in ("proc", "sys"):  # a script that looks there must not find anything
            run_command("mount", "-t", "tmpfs", "-o", "ro,size=4k", "rig", str(root / name))
    for path in _shared(settings):
        inside = Path(f"{root}{path}")
        inside.mkdir(parents=True, exist_ok=True)
        run_command("mount", "--bind", str(path), str(inside))


def _shared(settings: NodeSettings) -> list[Path]:
    """The same inside and outside. What lies on the file system of `/` is inside already, but would be a copy."""
    device = Path("/").stat().st_dev
    needed = {Path(settings.sockets).parent, Path(settings.folder)}
    code = {REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(settings.python)).parent.parent}
    return sorted(needed | {path for path in code if path.stat().st_dev != device or _below_mounted(path)})


def _below_mounted(path: Path) -> bool:
    """Whether a fresh mount of the node hides it."""
    return path.parts[1:2] in {("run",), ("tmp",)}
