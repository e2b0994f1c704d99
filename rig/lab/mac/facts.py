"""What `sysctl`, `vm_stat` and `df` of a virtual Mac say: this machine's figures, in the form of macOS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rig.lab.embedded.machine.answering import Answer
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts.root import boot_id_file, tree

PAGE_BYTES = 16384


@dataclass
class Facts:
    settings: NodeSettings
    changed: dict[str, str] = field(default_factory=dict[str, str])  # by `sysctl NAME=VALUE`, until the next boot

    async def sysctl(self, arguments: list[str], folder: str) -> Answer:
        del folder
        names_only = False
        words = list(arguments)
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option == "-n":
                names_only = True
            elif option != "-w":
                return Answer(1, err=f"sysctl: illegal option or not emulated: {option}\n")
        if not words:
            return Answer(1, err="usage: sysctl [-n] name ...\n")
        return self._sysctl(words, values_only=names_only)

    def _sysctl(self, words: list[str], *, values_only: bool) -> Answer:
        known = self._known()
        lines: list[str] = []
        for word in words:
            name, equals, value = word.partition("=")
            if name not in known:
                return Answer(1, out="".join(lines), err=f"sysctl: unknown oid '{name}'\n")
            if equals and name != "iogpu.wired_limit_mb":
                return Answer(1, out="".join(lines), err=f"sysctl: oid '{name}' is read only\n")
            shown = known[name]
            if equals:
                self.changed[name] = value
                shown = f"{shown} -> {value}"
            lines.append(f"{shown}\n" if values_only else f"{name}: {shown}\n")
        return Answer(0, out="".join(lines))

    def _known(self) -> Mapping[str, str]:
        memory = psutil.virtual_memory()
        booted = int(psutil.boot_time())
        return {
            "kern.bootsessionuuid": boot_id_file(self.settings).read_text().strip().upper(),
            "kern.boottime": f"{{ sec = {booted}, usec = 0 }}",
            "kern.hostname": self.settings.name,
            "kern.osproductversion": "26.2",
            "kern.osversion": "25C56",
            "kern.ostype": "Darwin",
            "kern.osrelease": "25.2.0",
            "hw.memsize": str(memory.total),
            "hw.pagesize": str(PAGE_BYTES),
            "hw.ncpu": str(os.cpu_count() or 1),
            "hw.logicalcpu": str(os.cpu_count() or 1),
            "hw.model": "Mac15,14",
            "machdep.cpu.brand_string": "Apple M3 Ultra",
            "vm.loadavg": "{ " + " ".join(f"{load:.2f}" for load in os.getloadavg()) + " }",
            "iogpu.wired_limit_mb": "0",
            "net.inet.ip.forwarding": "0",
        } | self.changed

    async def vm_stat(self, arguments: list[str], folder: str) -> Answer:
        del folder
        if arguments:
            return Answer(1, err="vm_stat: an interval is not emulated\n")
        memory = psutil.virtual_memory()
        pages = {
            "free": memory.free,
            "active": memory.active,
            "inactive": max(0, memory.available - memory.free),
            "speculative": 0,
            "throttled": 0,
            "wired down": max(0, memory.total - memory.available - memory.active),
            "purgeable": 0,
        }
        lines = [f"Mach Virtual Memory Statistics: (page size of {PAGE_BYTES} bytes)\n"]
        lines += [f"{f'Pages {name}:':<40}{size // PAGE_BYTES:>10}.\n" for name, size in pages.items()]
        return Answer(0, out="".join(lines))

    async def df(self, arguments: list[str], folder: str) -> Answer:
        """`df [-P] [-k] [PATH]`."""
        paths = [word for word in arguments if not word.startswith("-")] or ["/"]
        options = {letter for word in arguments if word.startswith("-") for letter in word[1:]}
        if options - set("Pk") or len(paths) > 1:
            return Answer(1, err=f"df: not emulated: df {' '.join(arguments)}\n")
        path = Path(f"{tree(self.settings)}{Path(folder) / paths[0]}")
        try:
            found = os.statvfs(path)
        except OSError:
            return Answer(1, err=f"df: {paths[0]}: No such file or directory\n")
        unit = 1024 if "k" in options else 512
        size, free = (count * found.f_frsize // unit for count in (found.f_blocks, found.f_bavail))
        used = f"{100 * (size - free) // max(1, size)}%"
        head = f"Filesystem {unit}-blocks Used Available Capacity Mounted on\n"
        return Answer(0, out=f"{head}/dev/disk3s1 {size} {size - free} {free} {used} /\n")
