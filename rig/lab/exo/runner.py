"""A runner: what one runner process does with its commands, as a function of time.

Only the standard library's lightest modules are imported, so that a runner process stays small and starts fast.
"""

from __future__ import annotations

from typing import NamedTuple

_TEXT = ("c", "|", "C", "$", "7", " ~", "p", "y", " z", "d", "N", "J", "1", "@", "I ", "H", "}", "?", "g", "&")
SLOTS = 16  # tasks generated side by side; more wait in the runner


class RunnerTimes(NamedTuple):
    """Durations of a runner's life, in seconds, already paced; `layers` is how many progress steps loading has."""

    spawn_s: float
    connect_s: float
    load_s: float
    warmup_s: float
    prefill_s: float
    token_s: float
    layers: int


class RunnerReport(NamedTuple):
    """What a runner tells its node.

    `kind`: idle, connecting, connected, loading (n of total layers), loaded, warming_up, ready; for a task: prefill
    (n of total prompt tokens), token (`text`), finish (`text` of the last token, `n` tokens in all, `finish_reason`).
    """

    kind: str
    task_id: str = ""
    text: str = ""
    n: int = 0
    total: int = 0
    finish_reason: str = ""


class _Task:
    __slots__ = ("answer", "done", "due", "max_tokens", "prefill", "prompt_tokens")

    def __init__(self, due: float, prompt_tokens: int, max_tokens: int, answer: int) -> None:
        self.due = due
        self.answer = answer  # from one token to the next
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.prefill = 0  # progress comments given: 0 at once, one half-way, one at the end
        self.done = 0


class RunnerLogic:
    """`command` takes what the node says, `tick` gives the reports that are due, `next_deadline` says when to tick."""

    def __init__(self, times: RunnerTimes, now: float) -> None:
        self._times = times
        self._steps: list[tuple[float, RunnerReport]] = [(now + times.spawn_s, RunnerReport("idle"))]
        self._tasks: dict[str, _Task] = {}
        self._paused = False
        self._hung = False

    def command(
        self, now: float, kind: str, task_id: str = "", prompt_tokens: int = 0, max_tokens: int = 0, answer: int = 0
    ) -> None:
        """Equal `answer`, equal text, as with a model at temperature 0. Raises ValueError for a kind that is none."""
        times = self._times
        if kind == "generate":
            self._tasks[task_id] = _Task(now, max(1, prompt_tokens), max(1, max_tokens), answer)
        elif kind == "cancel":
            self._tasks.pop(task_id, None)
        elif kind in ("pause", "resume"):
            self._paused = kind == "pause"
        elif kind == "hang":
            self._hung = True
        elif kind == "connect":
            self._steps += [(now, RunnerReport("connecting")), (now + times.connect_s, RunnerReport("connected"))]
        elif kind == "load":
            total = max(1, times.layers)
            step_s = times.load_s / total
            self._steps += [(now + i * step_s, RunnerReport("loading", n=i, total=total)) for i in range(total)]
            self._steps.append((now + times.load_s, RunnerReport("loaded")))
        elif kind == "warmup":
            self._steps += [(now, RunnerReport("warming_up")), (now + times.warmup_s, RunnerReport("ready"))]
        else:
            raise ValueError(f"unknown runner command {kind!r}")

    def next_deadline(self) -> float | None:
        """When the next report is due; None when nothing is."""
        if self._hung:
            return None
        due = [self._steps[0][0]] if self._steps else []
        if not self._paused:
            due += [task.due for task in self._active()]
        return min(due, default=None)

    def tick(self, now: float) -> list[RunnerReport]:
        """At most one token a task and call: a runner that was stopped goes on from now and catches nothing up."""
        if self._hung:
            return []
        reports: list[RunnerReport] = []
        while self._steps and self._steps[0][0] <= now:
            reports.append(self._steps.pop(0)[1])
        if not self._paused:
            for task_id, task in [(i, t) for i, t in self._tasks.items() if t.due <= now][:SLOTS]:
                reports.append(self._advance(task_id, task, now))
        return reports

    def _active(self) -> list[_Task]:
        return list(self._tasks.values())[:SLOTS]

    def _advance(self, task_id: str, task: _Task, now: float) -> RunnerReport:
        times = self._times
        if task.prefill < 3:
            processed = (0, task.prompt_tokens // 2, task.prompt_tokens)[task.prefill]
            task.prefill += 1
            task.due = now + (times.prefill_s / 2 if task.prefill < 3 else times.token_s)
            return RunnerReport("prefill", task_id, n=processed, total=task.prompt_tokens)
        task.done += 1
        task.answer = (task.answer * 1103515245 + 12345) & 0x7FFFFFFF
        text = _TEXT[(task.answer >> 12) % len(_TEXT)]
        if task.done >= task.max_tokens:
            del self._tasks[task_id]
            return RunnerReport("finish", task_id, text, n=task.done, total=task.prompt_tokens, finish_reason="length")
        task.due = now + times.token_s
        return RunnerReport("token", task_id, text)
