"""What a server asks of its clients: an API key, headers, certificates. And what may be said of them: nothing.

Requests take the headers in the transport, so that no request, record or error holds them. What a server sends back
may repeat a key all the same ("Incorrect API key provided: …"): whatever is written or shown of an answer is `masked`
first.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rig.errors import UsageError

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_OWN: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_TELLING: Final = 8  # characters: what is shorter is no secret, and would mask words
_Record = TypeVar("_Record", bound=msgspec.Struct)


class Access:
    """Without arguments: no key, and the certificates that the system trusts.

    Raises UsageError, which repeats neither key nor header.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        headers: Sequence[str] = (),
        cacert: Path | None = None,
        insecure: bool = False,
    ) -> None:
        if cacert is not None and insecure:
            raise UsageError("--cacert and --insecure exclude each other")
        self._cacert = cacert
        self._insecure = insecure
        self._tls: ssl.SSLContext | None = None
        named = [_header(text) for text in headers]
        if api_key is not None:
            if not _VALUE.fullmatch(api_key) or " " in api_key:
                raise UsageError("the API key is empty, or has white space or characters beyond ASCII")
            named.append(("authorization", f"Bearer {api_key}"))
        if sum(name == "authorization" for name, _ in named) > 1:
            raise UsageError("the API key and a header both give Authorization", remedy="give only one of them")
        self.head = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in named)
        secrets = {word for _, value in named for word in (value, value.split(" ")[-1]) if len(word) >= _TELLING}
        written = {form for secret in secrets for form in _forms(secret)}
        self._secrets = sorted((form.encode() for form in written), key=len, reverse=True)
        self.longest = max(map(len, self._secrets), default=0)
        if cacert is not None:
            self.tls()

    def tls(self) -> ssl.SSLContext:
        """One for all, made at the first use: making one costs some 50 ms. Raises UsageError."""
        if self._tls is None:
            try:
                self._tls = ssl.create_default_context(cafile=self._cacert)
            except OSError as error:  # an SSLError, too: no certificate in it
                raise UsageError(f"--cacert: cannot read certificates from {self._cacert}: {error}") from error
            if self._insecure:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE
        return self._tls

    def masked(self, data: bytes) -> bytes:
        """With stars for every secret, as many as it has characters: what is cut after this shows no part of one. What
        was cut before may end within one: its beginning is masked too, from `_TELLING` characters on."""
        for secret in self._secrets:
            data = data.replace(secret, b"*" * len(secret))
        for head in {secret[:_TELLING] for secret in self._secrets}:
            at = data.find(head)
            while at >= 0:
                length = max(_alike(data[at : at + self.longest], secret) for secret in self._secrets)
                data = data[:at] + b"*" * length + data[at + length :]
                at = data.find(head, at + length)
        return data

    def masked_record(self, record: _Record) -> _Record:
        """The same of all texts of a record."""
        if not self._secrets:
            return record
        encoded = msgspec.json.encode(record)
        shown = self.masked(encoded)
        return record if shown == encoded else msgspec.json.decode(shown, type=type(record))


def _alike(data: bytes, secret: bytes) -> int:
    """How many bytes they begin with in common."""
    pairs = enumerate(zip(data, secret, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(data), len(secret)))


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    value = value.strip()
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise UsageError("--header: expected `Name: value` in ASCII")
    if name.lower() in _OWN:
        raise UsageError(f"--header: {name} is set by the rig itself")
    return name.lower(), value


def _forms(secret: str) -> set[str]:
    """As it is, and as JSON may write it: once, or within a text in JSON."""
    once = msgspec.json.encode(secret).decode()[1:-1]
    slashes = once.replace("/", "\\/")
    forms = {secret, once, slashes}
    return forms | {msgspec.json.encode(form).decode()[1:-1] for form in forms}
