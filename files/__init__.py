"""Files: written whole or not at all, read row by row."""
