from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.generate import Shape, info_of, records_of, write_journal


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `results/` in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    return Path("results")


@pytest.fixture
def sound_run(results: Path) -> Path:
    shape = Shape(seed=3)
    return write_journal(results / "sound", info_of(shape, run="sound"), records_of(shape))


@pytest.fixture
def real_run(results: Path) -> Path:
    """With losses, on real nodes, at pace 1."""
    shape = Shape(seed=4, lost_share=0.4)
    return write_journal(results / "real", info_of(shape, run="real"), records_of(shape))


@pytest.fixture
def lossy_run(results: Path) -> Path:
    """On the embedded cluster at pace 10, with losses, cut off before its end."""
    shape = Shape(seed=4, lost_share=0.4, finished=False)
    info = info_of(shape, run="lossy", embedded=True, behaviour="exo-0.3.70", pace=10.0)
    return write_journal(results / "lossy", info, records_of(shape))
