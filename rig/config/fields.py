"""Field types shared by the three kinds of files: a strict base model, durations, and text that is safe to pass on."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from rig.targets import registry

WRITTEN: Final = {"written": True}
"""Validation context of values from a file, where a duration needs its unit. Code may give seconds as a float."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"\s*(\d{1,12})\s*(KiB|MiB|GiB|TiB)\s*", re.ASCII)
_UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LARGEST = 64 * 2**40
_LONGEST_S = 30 * 86400.0
_NODE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_HOST_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BYSTANDERS = ("", "/sbin/launchd", "/sbin/init", "/usr/sbin/sshd -D", "-zsh", "python3 -m http.server")


class Strict(BaseModel):
    """Unknown keys are refused, types are not guessed, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def parse_duration(value: Any) -> float:
    """`45s`, `2.5m`, `250ms`, `3h`, `1d` → seconds. Raises ValueError saying what was expected."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[1]) * _UNIT_S[match[2]]
        if seconds > _LONGEST_S:
            raise ValueError(f"expected a duration of at most 30d, not {value!r}")
        return seconds
    raise ValueError(f"expected a duration such as 45s, 2.5m or 250ms, not {value!r}")


def parse_span(value: Any) -> tuple[float, float]:
    """`60s..150s` → (60.0, 150.0); a single duration is a range of one value."""
    if not isinstance(value, str):
        raise ValueError(f"expected a range of durations such as 60s..150s, not {value!r}")
    low_text, dots, high_text = value.partition("..")
    low = parse_duration(low_text)
    high = parse_duration(high_text) if dots else low
    if high < low:
        raise ValueError(f"the range {value!r} ends before it begins")
    return low, high


def parse_size(value: Any) -> int:
    """`500MiB`, `2GiB`, `64KiB` → bytes. Raises ValueError saying what was expected."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is not None and (size := int(match[1]) * _UNIT[match[2]]) <= _LARGEST:
        return size
    raise ValueError(f"expected a size such as 500MiB or 2GiB (at most 64TiB), not {value!r}")


def duration_text(seconds: float) -> str:
    """Seconds as they would be written in a file: 90.0 → `1.5m`, 0.25 → `250ms`."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= _UNIT_S[unit]:
            return f"{seconds / _UNIT_S[unit]:.4g}{unit}"
    return f"{seconds * 1000:.4g}ms" if seconds else "0s"


def _duration(value: Any, info: ValidationInfo) -> float:
    return value if isinstance(value, float) and info.context != WRITTEN else parse_duration(value)


def _size(value: Any, info: ValidationInfo) -> int:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and info.context != WRITTEN else parse_size(value)


def _span(value: Any) -> tuple[float, float]:
    return cast("tuple[float, float]", value) if isinstance(value, tuple) else parse_span(value)


def _plain(value: str) -> str:
    if not value.strip():
        raise ValueError("expected some text, not nothing")
    if (match := _CONTROL.search(value)) is not None:
        raise ValueError(f"expected one line of plain text, found the control character {match[0]!r}")
    return value


def _node_name(value: str) -> str:
    if not _NODE_NAME.fullmatch(value) or len(value) > 63:
        raise ValueError(f"expected a node name of a-z, 0-9 and -, such as studio-1, not {value!r}")
    return value


def _host(value: str) -> str:
    if _is_address(value) or (len(value) <= 253 and all(_HOST_LABEL.fullmatch(label) for label in value.split("."))):
        return value
    raise ValueError(f"expected a host name or an address, not {value!r}")


def _absolute(value: str) -> str:
    _plain(value)
    parts = value.split("/")
    if parts[0] or ".." in parts or not any(parts):
        raise ValueError(f"expected an absolute path such as /Users/me/models, not {value!r}")
    return value.rstrip("/")


def _api_url(value: str) -> str:
    expected = f"expected http://HOST:PORT, not {value!r}"
    try:
        url = urlsplit(_plain(value))
        port = url.port
    except ValueError as problem:
        raise ValueError(f"{expected} ({problem})") from None
    if url.scheme not in ("http", "https") or not url.hostname or port is None or port == 0:
        raise ValueError(expected)
    if url.path.strip("/") or url.query or url.fragment or url.username is not None:
        raise ValueError(f"{expected}: nothing may follow the port or precede the host")
    _host(url.hostname)
    return value.rstrip("/")


def _address(value: str) -> str:
    """An address that can be cut: IPv4 or IPv6, link-local IPv6 with its interface."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise ValueError(f"expected an IPv4 or IPv6 address, not {value!r}") from None
    if address.is_loopback or address.is_multicast or address.is_unspecified:
        raise ValueError(f"expected an address of the node on a network, not {value!r}")
    zone = address.scope_id if isinstance(address, ipaddress.IPv6Address) else None
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_link_local and zone is None:
            raise ValueError(f"a link-local address needs its interface, such as {value}%en0")
        if zone is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,16}", zone):
            raise ValueError(f"expected an interface such as en0 after %, not {zone!r}")
    return value


def _target_name(value: str) -> str:
    if value not in registry.NAMES:
        raise ValueError(f"expected {' or '.join(registry.NAMES)}, not {value!r}")
    return value


def _process_regex(value: str) -> str:
    """An extended regular expression that finds the target's main process and nothing that every machine runs."""
    _plain(value)
    if "(?" in value:
        raise ValueError("expected an extended regular expression (as for grep -E): `(?` is not part of those")
    try:
        pattern = re.compile(value)
    except re.error as problem:
        raise ValueError(
            f"expected a regular expression: {problem.msg} at character {(problem.pos or 0) + 1}"
        ) from None
    for command in _BYSTANDERS:
        if pattern.search(command):
            raise ValueError(f"{value!r} also matches the command {command!r}: processes of others could be hit")
    return value


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds, written as `45s`, `2.5m`, `250ms`."""
Span = Annotated[tuple[float, float], BeforeValidator(_span)]
"""(low, high) seconds, written as `60s..150s`."""
Size = Annotated[int, BeforeValidator(_size)]
"""Bytes, written as `500MiB`, `2GiB`."""
Text = Annotated[str, AfterValidator(_plain)]
"""One line, not empty, no control characters: also commands, which `sh -c` runs on a node."""
NodeName = Annotated[str, AfterValidator(_node_name)]
Host = Annotated[str, AfterValidator(_host)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
ApiUrl = Annotated[str, AfterValidator(_api_url)]
Address = Annotated[str, AfterValidator(_address)]
TargetName = Annotated[str, AfterValidator(_target_name)]
ProcessRegex = Annotated[str, AfterValidator(_process_regex)]
