"""What `hosts: namespaces` needs of this machine, told before anything is started."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

from rig.errors import ClusterError
from rig.lab.hosts.addresses import controller_link

COMMANDS = {
    "ip": "iproute2",
    "nft": "nftables",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "util-linux",
    "sshd": "openssh-server",
    "nc": "netcat-openbsd",
    "lsof": "lsof",
    "perl": "perl",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SUBNETS = range(1, 251)


def require_namespaces() -> None:
    """Raises ClusterError naming what is missing and how to get it."""
    if sys.platform != "linux":
        raise ClusterError("hosts: namespaces needs Linux", remedy="use `hosts: processes` here")
    if os.geteuid() != 0:
        raise ClusterError("hosts: namespaces needs root", remedy="run it with sudo, or use `hosts: processes`")
    missing = [name for name in COMMANDS if shutil.which(name, path=SYSTEM_PATH) is None]
    if missing:
        packages = " ".join(sorted({COMMANDS[name] for name in missing}))
        raise ClusterError(
            f"hosts: namespaces needs {', '.join(missing)}", remedy=f"on Debian: apt-get install {packages}"
        )


def free_subnet() -> int:
    """A subnet that no other cluster on this machine uses now. Whoever starts it takes it, or fails."""
    taken = {path.name for path in Path("/sys/class/net").iterdir()}
    free = [number for number in SUBNETS if controller_link(number) not in taken]
    if not free:
        raise ClusterError("every subnet for clusters in namespaces is in use", remedy="end some of them")
    return random.choice(free)
