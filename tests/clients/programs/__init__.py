"""One client each."""
