"""The environment of what runs on a node: nothing of the user's own, the node's commands first on PATH, and the
marker.
"""

from __future__ import annotations

import os

from rig.lab.embedded.settings import CONTROLLER_ADDRESS, MARKER, SSH_PORT, NodeSettings

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def node_environment(settings: NodeSettings) -> dict[str, str]:
    """For every process of the node. `MARKER` is how they are found again when the node ends."""
    return {
        "PATH": f"{settings.bin}:{SYSTEM_PATH}",
        "HOME": settings.home,
        "USER": "rig",
        "LOGNAME": "rig",
        "SHELL": "/bin/sh",
        "TMPDIR": f"{settings.folder}/tmp",
        "LANG": os.environ.get("LANG", "C"),
        MARKER: settings.marker,
    }


def session_environment(settings: NodeSettings) -> dict[str, str]:
    """For a command over SSH: the controller is seen at an address of the nodes' own network."""
    connection = f"{CONTROLLER_ADDRESS} 50022 {settings.ipv4} {SSH_PORT}"
    client = f"{CONTROLLER_ADDRESS} 50022 {SSH_PORT}"
    session = {"SSH_CONNECTION": connection, "SSH_CLIENT": client, "EXO_HOME": settings.exo_home}
    return {**node_environment(settings), **session}
