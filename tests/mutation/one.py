"""One mutant against its tests, in a process of its own.

The mutated module takes the place of the real one at import; nothing on the disk changes.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

import pytest

PACKAGE: Final = "rig.analysis"
SLOW: Final = ("every_prefix", "memory_of", "live_decision_agrees")
"""Tests that take long and look at what others look at as well; they come last."""


class Swap(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives `source` for one module."""

    def __init__(self, module: str, source: str, path: str) -> None:
        self._module, self._source, self._path = module, source, path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._module:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self._path)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._path
        exec(compile(self._source, self._path, "exec"), module.__dict__)


class SlowLast:
    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: any(name in item.name for name in SLOW))


def play(module: str, source: str, path: str, tests: str) -> None:
    """Ends the process: status 0 says that the mutant survived, 1 that a test found it. Says nothing."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    if any(name.startswith(PACKAGE) for name in sys.modules):
        sys.exit(2)  # what is loaded already cannot be swapped
    sys.meta_path.insert(0, Swap(module, source, path))
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", tests]
    status = pytest.main(options, plugins=[SlowLast()])
    sys.exit(0 if status == 0 else 1)
