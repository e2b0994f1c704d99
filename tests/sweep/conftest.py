from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The sweep's nodes are network namespaces: left out loudly without root, and an error in CI."""
    here = Path(__file__).parent
    needing = [item for item in items if item.path.parent == here and "world" in getattr(item, "fixturenames", ())]
    if os.geteuid() == 0 or not needing:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"{len(needing)} tests need network namespaces: CI must run them as root")
    config.issue_config_time_warning(UserWarning(f"{len(needing)} tests of the sweep are left out: they need root"), 2)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]
