"""What holds for every test: where tools are found, which signals arrive, and to which layer a test belongs."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest

from rig.lab.hosts.require import SYSTEM_PATH
from tests.layers import LAYERS, Pure, layer_of

# The system's tools (nft, ip, iptables, sshd) are found wherever a user's PATH leaves their folders out.
os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"

# A shell that starts something in the background has it ignore Ctrl-C, and so would everything that a test starts.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not any(item.get_closest_marker(layer) for layer in LAYERS):
            item.add_marker(layer_of(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with Pure.guard(item.nodeid, on=item.get_closest_marker("pure") is not None):
        return (yield)
