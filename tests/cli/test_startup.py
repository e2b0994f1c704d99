"""How much `rig` brings with it: what a command imports before it does anything, and what an installation weighs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "results" / "sample"
MAX_INSTALL_BYTES = 300e6
SCRIPT = """
import sys
from rig.cli.app import main
sys.argv = ["rig", *sys.argv[1:]]
try:
    main()
finally:
    print(*(name for name in ("numpy", "pandas", "pyarrow") if name in sys.modules), file=sys.stderr, sep=",")
"""


def heavy(*arguments: str) -> list[str]:
    """The large packages that a command has imported by its end."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1].split(",") if done.stderr.splitlines()[-1] else []


@pytest.mark.parametrize("command", ["--help", "plan --minutes 4", "doctor --help", "soak --help", "compare --help"])
def test_a_command_starts_without_numpy_and_pandas(command: str) -> None:
    assert heavy(*command.split()) == []


def test_a_report_needs_no_pandas() -> None:
    assert heavy("show", str(SAMPLE)) == ["numpy"]


def test_an_installation_stays_under_300_mb() -> None:
    """What `pip install rig` brings on this system, without extras."""
    sizes = {name: _size_bytes(found) for name, found in _closure("rig").items()}
    assert "pandas" in sizes
    assert sum(sizes.values()) < MAX_INSTALL_BYTES, sorted(sizes.items(), key=lambda item: item[1])[-5:]


def _closure(name: str, found: dict[str, Distribution] | None = None) -> dict[str, Distribution]:
    """The distribution and all that it needs here."""
    known = {} if found is None else found
    if name not in known:
        known[name] = distribution(name)
        for requirement in known[name].requires or ():
            needed, _, condition = requirement.partition(";")
            word = re.match(r"[\w.-]+", needed)
            if word is not None and _applies(condition):
                _closure(word[0].lower().replace("_", "-"), known)
    return known


def _applies(condition: str) -> bool:
    """Markers of Python's version and of the platform; what belongs to an extra is not installed."""
    from packaging.markers import Marker  # noqa: PLC0415 (comes with pytest)

    return not condition.strip() or ("extra" not in condition and Marker(condition.strip()).evaluate())


def _size_bytes(of: Distribution) -> int:
    paths = {Path(str(file.locate())) for file in of.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file())
