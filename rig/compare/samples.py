"""Values of one run that may be taken to be independent of each other, from its DataFrames.

A fault hits several models at once, so the unit is the fault: its worst model. Requests follow one another in the same
weather, so the unit is a minute of calm weather: its median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report.frames import RunFrames, open_run

BLOCK_S: Final = 60.0
"""At pace 1."""
LEAST_IN_BLOCK: Final = 3
GROUPS: Final = ("survived", "replaced")
ByKind = dict[str, list[float]]


@dataclass
class Samples:
    """One run. By kind, one value a fault; `inf` where a model never served again. By model, one value a minute."""

    folder: Path
    analysis: Analysis
    verdict: Verdict
    serve: ByKind  # affected faults: time to serve of the worst model
    serve_by_group: dict[tuple[str, str], list[float]]  # (kind, survived | replaced)
    outage: ByKind  # effective faults: the longest outage, 0 where nothing failed
    failed: ByKind  # errors and lost together: what was lost and is now told is no worse
    lost: ByKind  # own node not faulted
    ttft: ByKind  # by model: medians of calm minutes
    itl: ByKind
    failing: list[float]  # share of the requests of each calm minute that did not complete

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def models(self) -> tuple[str, ...]:
        return self.analysis.settings.models


def read_samples(folder: Path) -> Samples:
    """Read and analyse the run in a folder. Raises JournalError."""
    return samples_of(open_run(folder))


def samples_of(run: RunFrames) -> Samples:
    faults = run.faults[run.faults["effective"]].assign(
        failed=lambda found: found["error"] + found["lost"], lost=lambda found: found["lost"] - found["lost_own_node"]
    )
    recoveries, calm = _recoveries(run), _calm(run)
    affected = recoveries[recoveries["class"] != "unaffected"]
    counts = faults.groupby("kind", sort=False)
    return Samples(
        run.folder,
        run.analysis,
        run.verdict,
        serve=_worst(affected, "serve"),
        serve_by_group={
            (kind, group): values
            for group in GROUPS
            for kind, values in _worst(affected[affected["group"] == group], "serve").items()
        },
        outage=_worst(recoveries, "outage"),
        failed={str(kind): found["failed"].tolist() for kind, found in counts},
        lost={str(kind): found["lost"].tolist() for kind, found in counts},
        ttft=_medians(calm, "ttft_s"),
        itl=_medians(calm, "itl_s"),
        failing=_by_minute(calm.assign(failing=calm["outcome"] != "completed"), "failing", "mean"),
    )


def _recoveries(run: RunFrames) -> pd.DataFrame:
    """Infinite where a model never served again, or not for good; also where another fault came before it had."""
    found = run.recoveries
    never = found["class"] == "not recovered"
    serve = found["time_to_serve_s"].mask(never).fillna(math.inf)
    return found.assign(serve=serve, outage=found["outage_s"].mask(never, math.inf))


def _worst(recoveries: pd.DataFrame, name: str) -> ByKind:
    by_fault = recoveries.groupby(["fault", "fault_kind"], sort=False)[name].max()
    return {str(kind): values.tolist() for kind, values in by_fault.groupby("fault_kind", sort=False)}


def _calm(run: RunFrames) -> pd.DataFrame:
    """Requests of the load that ended and that no fault touched, with the minute each was sent in."""
    found = run.requests
    ended = found["outcome"].isin(["completed", "error", "lost"])
    calm = found[(found["source"] == "load") & ended & ~found["exposed"].fillna(False) & found["own"].isna()]  # noqa: FBT003
    streams = (calm["outcome"] == "completed") & calm["streamed"]
    sent_t = calm["planned_t" if run.analysis.settings.open_loop else "started_t"]
    tokens = calm["usage_tokens"].fillna(calm["tokens"]).astype("float64")
    steps = (tokens - 1).where(tokens > 1, np.nan)
    return calm.assign(
        minute=calm["started_t"] // (BLOCK_S / max(run.info.pace, 1.0)),
        ttft_s=(calm["first_token_t"] - sent_t).where(streams),
        itl_s=((calm["last_token_t"] - calm["first_token_t"]) / steps).where(streams),
    )


def _medians(calm: pd.DataFrame, name: str) -> ByKind:
    by_model = calm.groupby("model", observed=True)
    return {str(model): _by_minute(found, name, "median") for model, found in by_model}


def _by_minute(calm: pd.DataFrame, name: str, of: str) -> list[float]:
    """One value for each minute that has enough of them."""
    found = calm.dropna(subset=[name]).groupby("minute")[name].agg(["count", of])
    return found.loc[found["count"] >= LEAST_IN_BLOCK, of].tolist()
