"""An OpenAI-compatible server promises nothing beyond what is judged of every target."""

from __future__ import annotations

from typing import Final

from rig.analysis.checks.of_target import TargetChecks

CHECKS: Final = TargetChecks()
