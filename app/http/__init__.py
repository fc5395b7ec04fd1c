"""HTTP: bytes to checked bodies, answers to bytes."""
