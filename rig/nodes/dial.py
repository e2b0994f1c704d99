"""One attempt to connect to a node: explicit options, verified host key, foreign exceptions mapped to ours.

Nothing of the user's `~/.ssh/config` takes part, so that a run means the same everywhere; the agent and the default
keys do, but only when the inventory names no key.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from pathlib import Path
from typing import TypeAlias

import asyncssh

from rig.config.inventory import Ssh
from rig.errors import HostKeyError, NodeError, SshError

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 5.0
KEEPALIVES_MISSED = 3  # a silent peer is given up after 20 s

Keys: TypeAlias = list[asyncssh.SSHKey]


class Refused(Exception):
    """A failure that another attempt cannot mend (wrong key, wrong host key, bad file). Carries the error to raise."""

    def __init__(self, error: SshError) -> None:
        super().__init__(str(error))
        self.error = error


async def resolve(name: str, ssh: Ssh) -> str:
    """The address of the host, looked up once, so that no name look-up can fail in the middle of a fault."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            found = await loop.getaddrinfo(ssh.host, ssh.port, type=socket.SOCK_STREAM)
    except TimeoutError as exc:
        raise SshError(name, f"looking up host {ssh.host!r} took over {CONNECT_TIMEOUT_S:g} s") from exc
    except (OSError, UnicodeError) as exc:
        remedy = "check `ssh.host` in the inventory, or use an address"
        raise SshError(name, f"host {ssh.host!r} is not known: {exc}", remedy=remedy) from exc
    return str(found[0][4][0])


async def dial(
    name: str, ssh: Ssh, address: str, *, timeout_s: float = CONNECT_TIMEOUT_S
) -> asyncssh.SSHClientConnection:
    """Connects, verifies the host key and logs in.

    Raises SshError for what may pass (refused, timed out, lost) and Refused around an SshError for what will not.
    """
    keys = _client_keys(name, ssh)
    trusted = trusted_keys(name, ssh)
    user = ssh.user or getpass.getuser()
    try:
        async with asyncio.timeout(timeout_s):
            return await asyncssh.connect(
                address,
                ssh.port,
                config=None,
                host_key_alias=ssh.host,
                known_hosts=trusted,
                x509_trusted_certs=None,
                username=user,
                client_keys=keys or (),
                agent_path=None if ssh.key else os.environ.get("SSH_AUTH_SOCK"),
                ignore_encrypted=ssh.key is None,
                preferred_auth="publickey",
                password=None,
                gss_host=None,
                agent_forwarding=False,
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVES_MISSED,
            )
    except Exception as exc:  # the edge where every foreign one is mapped
        raise _mapped(name, ssh, user, timeout_s, exc) from exc


def trusted_keys(name: str, ssh: Ssh) -> tuple[Keys, Keys, Keys]:
    """Host keys, authorities and revoked keys: the pinned key, or what the known-hosts file has. Raises Refused."""
    if ssh.host_key is not None:
        try:
            return ([asyncssh.import_public_key(ssh.host_key)], [], [])
        except asyncssh.KeyImportError as exc:
            message = f"`ssh.host_key` cannot be read as a public key: {exc}"
            raise Refused(HostKeyError(name, message, remedy="give it as `ssh-ed25519 AAAA…`")) from exc
    path = Path(ssh.known_hosts).expanduser()
    scan = (
        f"`ssh-keyscan -p {ssh.port} {ssh.host} >> {ssh.known_hosts}`, or pin it as `ssh.host_key`, "
        "after comparing it with the key on the machine itself"
    )
    try:
        hosts = asyncssh.read_known_hosts(str(path))
    except FileNotFoundError as exc:
        raise Refused(
            HostKeyError(name, f"there is no {ssh.known_hosts} to verify the host key with", remedy=scan)
        ) from exc
    except (OSError, ValueError) as exc:
        raise Refused(HostKeyError(name, f"{ssh.known_hosts} cannot be read: {exc}", remedy=scan)) from exc
    matched = hosts.match(ssh.host, "", None if ssh.port == 22 else ssh.port)
    if not matched[0] and not matched[1]:
        what = ssh.host if ssh.port == 22 else f"[{ssh.host}]:{ssh.port}"
        raise Refused(HostKeyError(name, f"the host key of {what} is not in {ssh.known_hosts}", remedy=scan))
    return (list(matched[0]), list(matched[1]), list(matched[2]))


def _client_keys(name: str, ssh: Ssh) -> list[asyncssh.SSHKey] | None:
    """The key named by the inventory, or None for the agent and the default keys. Raises Refused(SshError)."""
    if ssh.key is None:
        return None
    path = Path(ssh.key).expanduser()
    try:
        return [asyncssh.read_private_key(path)]
    except FileNotFoundError:
        error = SshError(name, f"key file {ssh.key} does not exist", remedy="correct `ssh.key` in the inventory")
    except PermissionError:
        error = SshError(name, f"key file {ssh.key} cannot be read: permission denied", remedy="own it, mode 600")
    except asyncssh.KeyEncryptionError:
        error = SshError(
            name, f"key file {ssh.key} needs a passphrase", remedy="load it into ssh-agent and drop `ssh.key`"
        )
    except (OSError, asyncssh.KeyImportError) as exc:
        error = SshError(
            name, f"key file {ssh.key} cannot be read: {exc}", remedy="give a private key in OpenSSH format"
        )
    raise Refused(error)


def _mapped(name: str, ssh: Ssh, user: str, timeout_s: float, exc: Exception) -> Exception:
    """A foreign exception → the most specific of ours; what another attempt cannot mend comes as Refused."""
    if isinstance(exc, NodeError | Refused):
        return exc
    where = f"{user}@{ssh.host} port {ssh.port}"
    source = "`ssh.host_key`" if ssh.host_key else ssh.known_hosts
    remote_login = "check that the machine is awake and that SSH (Remote Login on a Mac) is on"
    final: type[SshError] | None = None
    remedy: str | None = None
    match exc:
        case TimeoutError():
            message, remedy = f"no SSH connection to {where} within {timeout_s:g} s", remote_login
        case asyncssh.HostKeyNotVerifiable():
            final, message = HostKeyError, f"the host key of {where} is not the one in {source}"
            remedy = "replace it if the machine was set up anew and shows this key itself; else somebody else answers"
        case asyncssh.KeyExchangeFailed():
            final, message = HostKeyError, f"key exchange with {where} failed: {exc.reason}"
            remedy = f"the server may have no key of the type that {source} expects"
        case asyncssh.PermissionDenied():
            tried = ssh.key or "the agent and the default keys"
            final, message = SshError, f"{where} refused to log in with {tried}"
            remedy = f"add the public key to {user}'s authorized_keys there, or correct `ssh.user` / `ssh.key`"
        case ConnectionRefusedError():
            message, remedy = f"{where} refused the connection", remote_login
        case asyncssh.DisconnectError():
            message = f"{where} closed the connection: {exc.reason}"
        case OSError() | asyncssh.Error():
            message = f"{where}: {exc}"
        case _:
            return exc
    return SshError(name, message, remedy=remedy) if final is None else Refused(final(name, message, remedy=remedy))
