from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `results/` in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    return Path("results")
