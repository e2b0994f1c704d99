"""The commands that a node has in its `bin/`, first on PATH: each asks the node's machine and does what it answers."""

from __future__ import annotations

import shlex
from pathlib import Path

from rig.lab.embedded.settings import NodeSettings

COMMANDS = ("lsof", "nc", "exo-start", "exo-stop")
FILTER = {"linux": "nft", "darwin": "pfctl"}

# Starts in about 15 ms: no site, no environment, and `_socket` instead of `socket`.
# The first lines are shell and Python alike: a path with blanks, or a long one, may not stand after `#!`.
SHIM = """#!/bin/sh
'''exec' {quoted} -ISEB "$0" "$@"
' '''
import _socket, sys
from os import execv, getcwd
ask = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
ask.settimeout({timeout_s})
try:
    ask.connect({control!r})
    words = [word.encode("utf-8", "surrogateescape") for word in [{name!r}, getcwd(), *sys.argv[1:]]]
    ask.sendall(b"\\0".join(words) + b"\\n\\0\\n")
    answer = b""
    while part := ask.recv(65536):
        answer += part
    status, _, rest = answer.partition(b"\\0")
    if status == b"exec":
        words = rest.split(b"\\0")
        execv(words[0], words)
    out, _, err = rest.partition(b"\\0")
    sys.stdout.buffer.write(out)
    sys.stdout.flush()
    sys.stderr.buffer.write(err)
    sys.exit(int(status))
except (OSError, ValueError) as error:
    sys.stderr.write({name!r} + ": the node's machine does not answer: " + str(error) + "\\n")
    sys.exit(1)
"""

SUDO = """#!/bin/sh
# The node's user may do everything: `sudo -n COMMAND` is the command, `sudo -n -l [COMMAND]` says yes.
[ "$1" = "-n" ] || { echo "sudo: a password is required" >&2; exit 1; }
shift
case $1 in
    -l) exit 0 ;;
    -*|"") echo "sudo: not emulated: $*" >&2; exit 1 ;;
esac
exec "$@"
"""

HOSTNAME = """#!/bin/sh
echo {name}
"""

# Only what is asked on first contact; the rest is the system's own.
IP = """#!/bin/sh
[ "$*" = "-o addr" ] || {{ PATH=${{PATH#*:}}; exec ip "$@"; }}
echo "2: {interface}    inet {ipv4}/24 scope global {interface}"
echo "2: {interface}    inet6 {ipv6}/64 scope link"
"""

INERT = """#!/bin/sh
# A command that does nothing and says that all is well: a negative control.
exit 0
"""

NOT_HERE = """#!/bin/sh
# This node is some processes of a machine that is somebody's: restarting that one is not emulated.
echo "{name}: this node has no machine of its own" >&2
exit 1
"""

CALL_TIMEOUT_S = 30.0


def shim(settings: NodeSettings, name: str) -> str:
    """The text of a command that asks the node's machine."""
    return SHIM.format(
        quoted=shlex.quote(settings.python), control=settings.control_socket, name=name, timeout_s=CALL_TIMEOUT_S
    )


def write_shims(settings: NodeSettings) -> None:
    """(Re)write `bin/`. The inert commands come last, so that they take the place of others."""
    folder = Path(settings.bin)
    folder.mkdir(exist_ok=True)
    scripts = {name: shim(settings, name) for name in (*COMMANDS, FILTER[settings.system])}
    scripts["sudo"] = SUDO
    scripts["hostname"] = HOSTNAME.format(name=settings.name)
    scripts["ip"] = IP.format(interface=settings.interface, ipv4=settings.ipv4, ipv6=settings.ipv6)
    scripts |= {name: NOT_HERE.format(name=name) for name in ("shutdown", "reboot")}
    for name in settings.inert:
        scripts[name] = INERT
    for name, text in scripts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
