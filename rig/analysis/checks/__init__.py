"""Checks: pure functions from what is known of a run to pass, fail, unknown or not-exercised, with evidence."""
