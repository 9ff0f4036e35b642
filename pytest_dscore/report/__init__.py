"""Reports: they know only verdicts."""
