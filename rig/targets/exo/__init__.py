"""exo: its API, its event log, the promises of its deployments keeper."""
