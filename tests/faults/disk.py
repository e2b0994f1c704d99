"""Disks for `rig_dir`: a small one in memory that can be filled or made read-only, and one whose content can be told
from what is only on its way there: an ext4 in a file, which the kernel writes to when it writes to the disk.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NEVER_S = 300  # between the kernel's own writings: nothing gets to the disk that nobody asked for


@contextmanager
def memory_disk(at: Path) -> Generator[Path]:
    """512 KiB and 128 files."""
    at.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=128,mode=700", "rig-test", str(at))
    try:
        yield at
    finally:
        _run("umount", "-l", str(at))


def fill(disk: Path) -> None:
    """Neither a byte nor a file more."""
    with contextlib.suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with contextlib.suppress(OSError):
        for number in range(1000):
            (disk / f"ballast-{number}").touch()


def read_only(disk: Path) -> None:
    _run("mount", "-o", "remount,ro", str(disk))


class Image:
    """An ext4 in a file, mounted at `at`."""

    def __init__(self, file: Path, at: Path) -> None:
        self.file, self.at = file, at
        file.write_bytes(b"")
        with file.open("r+b") as image:
            image.truncate(16 * 2**20)
        _run("mkfs.ext4", "-q", "-m", "0", str(file))
        self._mount()
        (at / "lost+found").rmdir()
        at.chmod(0o700)
        _run("sync", "-f", str(at))

    def _mount(self) -> None:
        self.at.mkdir(parents=True, exist_ok=True)
        _run("mount", "-o", f"loop,commit={NEVER_S}", str(self.file), str(self.at))

    def cut(self, copy: Path) -> Image:
        """The disk as the power would leave it now, in a file of its own; not mounted."""
        shutil.copyfile(self.file, copy)
        left = object.__new__(Image)
        left.file, left.at = copy, self.at
        return left

    def instead_of(self, other: Image) -> None:
        """Mounted in the place of the other, whose last writings are lost."""
        other.unmount()
        self._mount()

    def unmount(self) -> None:
        _run("umount", "-l", str(self.at))


@contextmanager
def image_disk(file: Path, at: Path) -> Generator[Image]:
    image = Image(file, at)
    try:
        yield image
    finally:
        image.unmount()


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=60)
