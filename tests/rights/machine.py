"""A machine with users of its own and real sudo: a mount namespace over this one, in which the rig is bootstrapped.

What is written to /etc, /usr/local, /run, /var, /opt or /home there, accounts included, goes with it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = Path(__file__).parents[2] / "faults"
LAYERED = ("etc", "usr/local", "run", "var", "home", "root", "opt")
USER, OTHER = "rigssh", "eve"
LIBEXEC = Path("/usr/local/libexec/rig")
HELPER = LIBEXEC / "root.sh"

_ENTER = """
set -e
folder=$1; shift
mount -t tmpfs -o mode=755 rig-rights "$folder"
for each; do
    mkdir -p "$folder/layers/$each" "$folder/work/$each"
    mount -t overlay -o "lowerdir=/$each,upperdir=$folder/layers/$each,workdir=$folder/work/$each" rig-rights "/$each"
done
chmod 711 /root
echo up
exec cat
"""


@dataclass(frozen=True)
class Done:
    status: int
    said: str  # stdout and stderr


@dataclass
class Machine:
    """`network`: words that enter its network namespace."""

    network: list[str]
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="rig-rights-")))

    def __enter__(self) -> Machine:
        self.folder.chmod(0o755)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "sh", str(self.folder)]
        self.holder = subprocess.Popen(
            [*self.network, *command, *LAYERED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "up\n"
        self.must("cp", "-r", str(FAULTS), f"{self.folder}/faults")
        self.must("chmod", "-R", "a+rX", f"{self.folder}/faults")
        for name in (USER, OTHER):
            self.must("useradd", "--create-home", "--shell", "/bin/sh", name)
        return self

    def __exit__(self, *of: object) -> None:
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def enter(self, user: str = "root") -> list[str]:
        """The words that run what follows there, with the rights of a user and nothing more."""
        inside = ["nsenter", "--target", str(self.holder.pid), "--mount", "--net", "--wdns=/"]
        if user == "root":
            return inside
        lowered = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        return [*inside, *lowered, "env", f"HOME=/home/{user}", f"USER={user}"]

    def run(self, words: Sequence[str], *, user: str = "root", timeout_s: float = 60.0) -> Done:
        done = subprocess.run(
            [*self.enter(user), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Done(done.returncode, done.stdout)

    def shell(self, text: str, *, user: str = "root") -> Done:
        return self.run(["sh", "-c", text], user=user)

    def must(self, *words: str) -> str:
        done = self.run(words)
        assert done.status == 0, f"{words}: {done.said}"
        return done.said

    def bootstrap(self, step: str, rig_dir: str, *, allow: str = "cut shape link") -> Done:
        script = f"{self.folder}/faults/bootstrap.sh"
        return self.run(["sh", script, f"step={step}", f"user={USER}", f"rig_dir={rig_dir}", f"allow={allow}"])

    def helper(self, *words: str, user: str = USER) -> Done:
        return self.run(["sudo", "-n", str(HELPER), *words], user=user)
