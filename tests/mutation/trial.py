"""Mutants against the tests that reach them, each in a process that parts from one in which everything is loaded.

A plugin of pytest: in place of the tests it runs mutants. The mutated function gets its new code in that process alone;
no file changes. Which functions a test calls is seen once, before; a mutant that no test reaches survives.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Final, Literal, TypeAlias

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import Mutant, mutant_of

LIMIT_S: Final = 200

End: TypeAlias = Literal["killed", "survived", "timed out", "not tried"]
Function: TypeAlias = tuple[str, str]
"""A file and the qualified name of a function at its top level or in a class."""


@dataclass(frozen=True)
class Place:
    """`number` counts the mutants of one module."""

    path: Path
    number: int


@dataclass(frozen=True)
class _Calls:
    """What one test calls without any mutant."""

    passed: bool
    took_s: float
    functions: set[Function]


class Trial:
    """`ends` has what became of each mutant, in the order in which they were decided."""

    def __init__(self, places: Iterable[Place], *, jobs: int, slowest_s: float, until: float) -> None:
        self._places = iter(places)
        self._jobs = jobs
        self._slowest_s = slowest_s
        self._until = until
        self.ends: dict[Place, End] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        reach = _reach(items, self._slowest_s)
        live = _live()
        gc.freeze()
        running: dict[int, Place] = {}
        for place in self._places:
            if time.monotonic() > self._until:
                self.ends[place] = "not tried"
                continue
            mutant = mutant_of(place.path.read_text(), place.number)
            if len(running) == self._jobs:
                self._await(running)
            function = (str(place.path.resolve()), mutant.function)
            running[_part(mutant, live[function], [items[index] for index in reach[function]])] = place
        while running:
            self._await(running)
        return True

    def _await(self, running: dict[int, Place]) -> None:
        pid, status = os.wait()
        place = running.pop(pid)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            self.ends[place] = "timed out"
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1):
            self.ends[place] = "killed" if os.WEXITSTATUS(status) else "survived"
        else:
            raise SystemExit(f"{place}: the process ended with {status}")
        if self.ends[place] == "survived":
            mutant = mutant_of(place.path.read_text(), place.number)
            print(f"survived  {place.path}:{mutant.line} {mutant.function} #{mutant.number}: {mutant.what}", flush=True)


def _part(mutant: Mutant, functions: list[FunctionType], items: list[pytest.Item]) -> int:
    """The pid of a process that ends with 0 when every test passes on the mutant, with 1 when one does not."""
    pid = os.fork()
    if pid:
        return pid
    status = 2
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        _swap(mutant, functions)
        _silence()
        status = 0 if all(_passes(item) for item in items) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _silence() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _live() -> defaultdict[Function, list[FunctionType]]:
    """The function objects of each function: itself, and the closures that it made at import."""
    live: defaultdict[Function, list[FunctionType]] = defaultdict(list)
    for item in gc.get_objects():
        if isinstance(item, FunctionType) and "/rig/" in item.__code__.co_filename:
            live[_called(item.__code__)].append(item)
    return live


def _swap(mutant: Mutant, functions: list[FunctionType]) -> None:
    assert functions, f"nothing to swap for {mutant.function}"
    filename = functions[0].__code__.co_filename
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(compile(mutant.tree, filename, "exec"))}
    for function in functions:
        function.__code__ = codes[function.__code__.co_qualname, function.__code__.co_firstlineno]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _called(code: CodeType) -> Function:
    return str(Path(code.co_filename)), code.co_qualname.split(".<locals>")[0]


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False))


def _reach(items: list[pytest.Item], slowest_s: float) -> defaultdict[Function, list[int]]:
    """The tests, by index, that call each function; the quickest first. Seen in a process of its own."""
    with tempfile.TemporaryFile() as seen:
        pid = os.fork()
        if not pid:
            try:
                _silence()
                pickle.dump([_calls(item) for item in items], seen)
                seen.flush()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        seen.seek(0)
        calls: list[_Calls] = pickle.load(seen)
    failed = [item.nodeid for item, call in zip(items, calls, strict=True) if not call.passed]
    if failed:
        pytest.exit(f"failed without any mutant: {', '.join(failed)}", returncode=1)
    reach: defaultdict[Function, list[int]] = defaultdict(list)
    for index in sorted(range(len(items)), key=lambda index: calls[index].took_s):
        for function in calls[index].functions if calls[index].took_s <= slowest_s else ():
            reach[function].append(index)
    return reach


def _calls(item: pytest.Item) -> _Calls:
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        del event, argument
        seen.add(frame.f_code)  # a call; what happens in it is not traced

    began = time.monotonic()
    threading.settrace(note)
    sys.settrace(note)
    passed = _passes(item)
    sys.settrace(None)
    took_s = time.monotonic() - began
    return _Calls(passed, took_s, {_called(code) for code in seen if "/rig/" in code.co_filename})
