"""The records of a journal as tables: requests with their starts and ends joined, the rig's health, all others."""
