"""Runs: put together in one place (`compose`), conducted from their first phase to their last record (`activities`).

The activities of a run do not know each other; they meet in the journal. What one needs of another (has the target
recovered? which node runs this model?) is handed in from here as a callable over the journal's records.
"""
