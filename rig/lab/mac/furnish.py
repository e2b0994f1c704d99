"""What a virtual Mac's root folder holds: the commands of macOS in their places, its files, and none of Linux's own.

The commands are of three sorts: small scripts (`bin/`), which answer by themselves or give a BSD face to the command
behind them; shims, which ask the machine; and whatever Linux has under the same name that behaves alike. The real ones
stay reachable in /usr/lib/gnu, which is on nobody's PATH.
"""

from __future__ import annotations

import plistlib
from collections.abc import Iterable
from pathlib import Path

from rig.lab.embedded.machine.shims import INERT, shim
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts.places import JOB, PLIST
from rig.lab.hosts.root import tree
from rig.lab.hosts.switch import run_command

OWN = Path(__file__).parent / "bin"
# Where macOS has them; `bin` and `sbin` of `/` are those of /usr here.
SCRIPTS = {
    "usr/bin": (
        *("caffeinate", "date", "fdesetup", "find", "grep", "ibv_devices", "memory_pressure", "nc", "pmset"),
        *("ps", "rdma_ctl", "sed", "sleep", "stat", "sudo", "sw_vers", "uname"),
    ),
    "usr/sbin": ("networksetup", "system_profiler"),
    "usr/libexec/ApplicationFirewall": ("socketfilterfw",),
}
PLAIN = (
    *("base64", "cat", "chmod", "chown", "cp", "cut", "du", "head", "id", "ln", "ls", "mkdir", "mktemp", "mv"),
    *("readlink", "rm", "rmdir", "sort", "tail", "tee", "touch", "tr", "uniq", "wc", "xargs"),
)
ASKED = {
    "usr/bin": ("df", "launchctl", "plutil", "vm_stat"),
    "usr/libexec": ("ps",),  # behind the one in `bin/`
    "usr/sbin": ("dnctl", "ifconfig", "lsof", "pfctl", "reboot", "route", "shutdown", "sysctl"),
}
# What a script must not find. Whatever is not here and not above is as Linux has it.
ABSENT = (
    *("setsid", "timeout", "flock", "taskset", "chrt", "ionice", "prlimit", "nsenter", "unshare", "free", "pidof"),
    *("ip", "ss", "tc", "bridge", "nft", "iptables", "ip6tables", "nstat", "rtmon", "conntrack", "ethtool"),
    *(
        "systemctl",
        "systemd-run",
        "journalctl",
        "loginctl",
        "hostnamectl",
        "timedatectl",
        "service",
        "start-stop-daemon",
    ),
    *("tac", "shuf", "nproc", "numfmt", "getent", "ldd", "strace", "stdbuf", "md5sum", "lsblk", "findmnt", "losetup"),
    *("apt", "apt-get", "dpkg", "dpkg-query", "mount.nfs", "pgrep.procps", "watch", "dmesg.util-linux", "lscpu"),
)
PF_CONF = """\
#
# com.apple anchor point
#
scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
"""
PF_ANCHORS = """\
#
# AirDrop anchor point.
#
anchor "200.AirDrop/*"

#
# Application Firewall anchor point.
#
anchor "250.ApplicationFirewall/*"
"""
MARK = "var/db/virtual-mac"


def furnish_mac(settings: NodeSettings) -> None:
    """At each boot; the files that a user may change are only written at the first. Raises OSError, ClusterError."""
    root = tree(settings)
    gnu = root / "usr/lib/gnu"
    first = not (root / MARK).exists()
    if first:
        _first_boot(settings, root, gnu)
    run_command("mount", "--bind", "/usr/bin", str(gnu))


def _first_boot(settings: NodeSettings, root: Path, gnu: Path) -> None:
    gnu.mkdir()
    for folder in ("usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"):
        _remove(root / folder, ABSENT)
    for folder, names in ASKED.items():
        _remove(root / "usr/bin", names)
        for name in names:
            _put(root / folder / name, shim(settings, name))
    for folder, names in SCRIPTS.items():
        for name in names:
            _put(root / folder / name, (OWN / name).read_text())
    for name in PLAIN:
        _put(root / "usr/bin" / name, (OWN / "plain").read_text())
    for name in settings.inert:
        _put(root / ("usr/sbin" if name == "pfctl" else "usr/bin") / name, INERT)
    shell = root / "usr/bin/sh"
    shell.unlink()
    shell.symlink_to("bash")  # which is posix when it is called sh
    _files(settings, root)


def _files(settings: NodeSettings, root: Path) -> None:
    for folder in (MARK, "Library/LaunchDaemons", "etc/pf.anchors", "etc/sudoers.d", "Users", "private", "System"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("etc", "var", "tmp"):
        (root / "private" / name).symlink_to(f"/{name}")
    (root / "etc/pf.conf").write_text(PF_CONF)
    (root / "etc/pf.anchors/com.apple").write_text(PF_ANCHORS)
    job = {
        "Label": JOB,
        "ProgramArguments": [settings.python, "-m", "rig.lab.embedded.process", settings.folder],
        "WorkingDirectory": settings.folder,
        "RunAtLoad": True,
        "KeepAlive": True,
    }
    (root / PLIST.lstrip("/")).write_bytes(plistlib.dumps(job))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
