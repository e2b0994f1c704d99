from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rig.errors import EXIT_USAGE, ConfigError


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Writes a file and returns its path."""

    def write(text: str | bytes) -> str:
        path = tmp_path / "file.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


@pytest.fixture
def refused(
    written: Callable[[str | bytes], str],
) -> Callable[[Callable[[str], object], str | bytes, list[str]], None]:
    """Asserts that loading a file with `text` is refused and that all of `lines` are said (`:LINE:…` of that file)."""

    def check(load: Callable[[str], object], text: str | bytes, lines: list[str]) -> None:
        path = written(text)
        with pytest.raises(ConfigError) as caught:
            load(path)
        said = str(caught.value)
        assert said.startswith(f"{path}:")
        for line in lines:
            assert (f"{path}{line}" if line[0] == ":" and line[1].isdigit() else line) in said
        assert caught.value.exit_code == EXIT_USAGE
        assert "Traceback" not in said
        assert "pydantic" not in said

    return check
