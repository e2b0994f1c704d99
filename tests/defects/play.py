"""One run under virtual time, judged twice: with the event log, and with everything of it taken out of the journal."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rig.analysis.analyse import Analysis, analyse
from rig.analysis.checks.check import CheckResult
from rig.analysis.verdict import checks_of, run_check
from rig.journal.read import read_run
from rig.journal.records import EventLogRead, EventSeen
from rig.lab.exo.defects import Changes
from rig.lab.simulated.soak import simulated_soak
from rig.lab.simulated.verify import simulated_scenario
from rig.verify.read import load_scenario
from tests.defects.cases import Case
from tests.defects.draw import drawn

LIMIT_S: Final = 900.0
ORDER: Final = ("not-exercised", "pass", "unknown", "fail")


@dataclass(frozen=True)
class Outcome:
    """`with_log` and `without_log`: status and summary by check."""

    ended: str
    with_log: dict[str, tuple[str, str]]
    without_log: dict[str, tuple[str, str]]
    took_s: float
    virtual_s: float
    requests: int
    faults: int
    folder: str = ""
    seed: int = 0
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])

    def failed(self, *, log: bool = True) -> list[str]:
        statuses = self.with_log if log else self.without_log
        return [name for name, (status, _) in statuses.items() if status == "fail"]


def soak(
    case: Case, seed: int, *, behaviour: str, defects: list[str], keep: Path | None, changes: Changes | None = None
) -> Outcome:
    """Raises ClusterError, JournalError: a run that could not be made says nothing."""
    what = drawn(case, seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rig-defects-") as scratch:
        folder = Path(scratch) / "run" if keep is None else keep
        folder.mkdir(parents=True)
        ended = simulated_soak(
            what.spec(behaviour, defects),
            what.workload,
            what.plan,
            length_s=what.length_s,
            folder=folder,
            seed=what.seed,
            limit_s=LIMIT_S,
            changes=changes,
        )
        return judged(folder, f"{ended.reason} {ended.detail}".strip(), began, seed)


def scenario(
    case: Case, seed: int, *, behaviour: str, defects: list[str], keep: Path | None, changes: Changes | None = None
) -> Outcome:
    """The scenarios of a case, each on a cluster of its own, judged together: the worst answer of each check.

    Raises ClusterError, TargetError, JournalError: a run that could not be made says nothing.
    """
    what = drawn(case, seed)
    spec = what.spec(behaviour, defects)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="rig-defects-") as scratch:
        for number, name in enumerate(case.scenarios):
            began = time.monotonic()
            folder = (Path(scratch) if keep is None else keep) / f"{number}-{name}"
            folder.mkdir(parents=True)
            each = spec.model_copy(update={"seed": spec.seed + number})
            simulated_scenario(
                each, what.workload, load_scenario(name), folder=folder, limit_s=LIMIT_S, changes=changes
            )
            outcomes.append(judged(folder, "finished", began, seed))
    return worst(outcomes)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Several runs as one. Pure."""
    with_log: dict[str, tuple[str, str]] = {}
    without_log: dict[str, tuple[str, str]] = {}
    evidence: dict[str, tuple[str, ...]] = {}
    for outcome in outcomes:
        for name, answer in outcome.with_log.items():
            if name not in with_log or ORDER.index(answer[0]) > ORDER.index(with_log[name][0]):
                with_log[name] = answer
                evidence[name] = outcome.evidence.get(name, ())
        for name, answer in outcome.without_log.items():
            if name not in without_log or ORDER.index(answer[0]) > ORDER.index(without_log[name][0]):
                without_log[name] = answer
    return replace(
        outcomes[0],
        with_log=with_log,
        without_log=without_log,
        evidence=evidence,
        took_s=sum(outcome.took_s for outcome in outcomes),
        virtual_s=sum(outcome.virtual_s for outcome in outcomes),
        faults=sum(outcome.faults for outcome in outcomes),
    )


def _answers(results: Sequence[CheckResult], analysis: Analysis) -> dict[str, tuple[str, str]]:
    """As the verdict takes them: what the plan requires and nothing called upon is unknown."""
    required = set(analysis.settings.requires)
    return {
        one.name: (
            "unknown" if one.status == "not-exercised" and one.name in required else one.status,
            one.summary,
        )
        for one in results
    }


def judged(folder: Path, ended: str, began: float, seed: int) -> Outcome:
    """What the checks say of the run in a folder."""
    run = read_run(folder)
    records = list(run.records())
    full = analyse(run.info, records, run.notes)
    bare = analyse(run.info, (record for record in records if not isinstance(record, EventSeen | EventLogRead)))
    results = [run_check(check, full) for check in checks_of("exo")]
    return Outcome(
        ended=ended,
        with_log=_answers(results, full),
        without_log=_answers([run_check(check, bare) for check in checks_of("exo")], bare),
        took_s=time.monotonic() - began,
        virtual_s=full.end_t,
        requests=full.requests.total.started,
        faults=sum(fault.effective for fault in full.faults),
        folder=str(folder),
        seed=seed,
        evidence={result.name: result.evidence[:4] for result in results if result.status in ("fail", "unknown")},
    )
