"""Texts to vectors: what is done when."""
