"""What targets and nodes said, as it may leave the rig: no control of a terminal, no password.

Names, findings and bodies come from elsewhere and may hold anything. Where they go to a terminal, to Markdown, XML or
HTML, each control character becomes its picture (ESC is ␛), and what turns text around or is no character becomes �.
The journal keeps the truth, but for passwords.
"""

from __future__ import annotations

import re
from typing import Final

_SPOOFING: Final = (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_PICTURES: Final[dict[int, str]] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **dict.fromkeys(_SPOOFING, "\ufffd"),
}
_UNSAFE: Final = re.compile(f"[{re.escape(''.join(map(chr, _PICTURES)))}\ud800-\udfff]")
_USERINFO: Final = r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/?#@\"'<>]*@"
_USER_TEXT: Final = re.compile(_USERINFO)
_USER_BYTES: Final = re.compile(_USERINFO.encode())


def visible(text: str) -> str:
    """With every character shown and credentials left out. Line breaks and tabs stay."""
    return redacted(_UNSAFE.sub(lambda found: _PICTURES.get(ord(found[0]), "\ufffd"), text))


def one_line(text: str) -> str:
    """The same on one line, so that nobody's text looks like a line of the rig's own."""
    return visible(text.replace("\n", "\u240a").replace("\t", " "))


def redacted(text: str) -> str:
    """Without the user and password of URLs: `http://user:pass@host` → `http://…@host`."""
    return _USER_TEXT.sub(r"\1…@", text) if "://" in text else text


def redacted_bytes(data: bytes) -> bytes:
    """The same of UTF-8, such as a line of the journal."""
    return _USER_BYTES.sub(rb"\1" + "…@".encode(), data) if b"://" in data else data
