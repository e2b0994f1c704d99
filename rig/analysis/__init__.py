"""What a run means, as pure functions of its journal: windows, requests, recoveries, checks, verdict."""
