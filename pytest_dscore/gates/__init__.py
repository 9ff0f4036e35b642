"""What pytest sees: collected items, the marker, the fixture, xdist. Loaded only with ``--dscore``."""
