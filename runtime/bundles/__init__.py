"""Folders of models."""
