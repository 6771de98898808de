"""Property tests: the invariants, against foldline's public names and the oracle in `reference`."""
