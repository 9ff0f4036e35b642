"""Scripts that measure speed and memory; each prints its table and is run with ``python -m benchmarks.NAME``."""
