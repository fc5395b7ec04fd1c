"""The papers' equations once more, as loops in numpy that share no code with `models`."""
