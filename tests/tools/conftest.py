"""Bundles of tests/cli, and the tasks of this folder's tools."""

from tests.cli.conftest import models

__all__ = ["models"]
