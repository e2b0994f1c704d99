"""The addresses of a host, and whose failure it is where none can be connected to.

What the rig's own machine cannot do (find an address for a name, open one more socket, give it a port, reach any
network) says nothing of the target. A name under `.local` is another matter: the host itself tells it, by multicast
DNS, and where nobody tells it the host is gone.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts of a URL that are this machine."""
_TOLD_BY_THE_HOST: Final = (".local", ".local.")
_OWN: Final = frozenset(
    {
        errno.EADDRNOTAVAIL,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
        errno.ENETDOWN,
        errno.ENETUNREACH,
    }
)


@lru_cache(maxsize=1024)
def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_told_by_the_host(name: str) -> bool:
    return name.lower().endswith(_TOLD_BY_THE_HOST)


async def addresses_of(host: str, port: int) -> list[str]:
    """In the order in which they are to be tried. Raises socket.gaierror."""
    if is_address(host):
        return [host]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(_text(place) for *_, place in found))


def is_own(failures: Sequence[OSError], host: str) -> bool:
    """Whether all of them, of attempts to connect to the host, are failures of this machine."""
    if any(isinstance(failure, socket.gaierror) for failure in failures):
        return not is_told_by_the_host(host)
    return all(failure.errno in _OWN for failure in failures)


def _text(place: tuple[Any, ...]) -> str:
    """A link-local address says nothing without its interface: of IPv6 there are address, port, flow and scope."""
    scope = place[3] if len(place) == 4 else 0
    return f"{place[0]}%{scope}" if scope else place[0]
