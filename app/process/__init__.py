"""The serving processes."""
