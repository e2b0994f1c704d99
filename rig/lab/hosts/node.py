"""What an inventory says of a node in namespaces: the same as of a real machine, with the real ports and addresses."""

from __future__ import annotations

from rig.config.inventory import Node, Ssh
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts.addresses import of_node
from rig.lab.hosts.places import DARWIN_PATH, JOB, LINUX_PATH, PLIST
from rig.targets.exo.fields import ExoProcess
from rig.targets.exo.inventory import ExoNode


def host_entry(settings: NodeSettings, key: str, host_key: str, match: str) -> Node:
    """`key`: path of the client's private key; `match`: the pattern of exo's main process."""
    return ExoNode(
        ssh=Ssh(host=settings.ipv4, port=settings.ssh_port, user="root", key=key, host_key=host_key),
        api=f"http://{settings.ipv4}:{settings.api_port}",
        addresses=of_node(settings.subnet, settings.index, settings.system),
        process=_by_launchd(settings, match) if settings.system == "darwin" else _by_command(settings, match),
        rig_dir=settings.rig_dir,
        path=DARWIN_PATH if settings.system == "darwin" else LINUX_PATH,
        sudo=False,
        restart_rehearsed=True,
    )


def _by_command(settings: NodeSettings, match: str) -> ExoProcess:
    return ExoProcess(
        home=settings.exo_home, match=match, start="/usr/local/bin/exo-start", stop="/usr/local/bin/exo-stop"
    )


def _by_launchd(settings: NodeSettings, match: str) -> ExoProcess:
    """As the stock inventory for Macs: a LaunchDaemon with KeepAlive, told to let go for a crash that lasts."""
    bootstrap = f"/bin/launchctl bootstrap system {PLIST}"
    return ExoProcess(
        home=settings.exo_home,
        match=match,
        start=f"{bootstrap} 2>/dev/null; /bin/launchctl kickstart system/{JOB}",
        stop=f"/bin/launchctl bootout system/{JOB}",
        hold=f"/bin/launchctl bootout system/{JOB}",
        release=bootstrap,
    )
