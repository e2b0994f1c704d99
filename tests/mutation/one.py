"""One mutant against its tests: `python -m tests.mutation.one MODULE NUMBER`. Exit 0: it survived, 1: it was killed.

The mutated module takes the place of the real one at import; nothing on the disk changes.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.mutants import mutants_of


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


def main(module: str, number: int, tests: list[str]) -> int:
    path = Path(*module.split(".")).with_suffix(".py")
    mutant = next(one for one in mutants_of(path.read_text()) if one.number == number)
    sys.meta_path.insert(0, Swap(module, mutant.source, str(path)))
    status = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
