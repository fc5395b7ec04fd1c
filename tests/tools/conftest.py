"""Bundles of tests/cli, and the tasks of this folder's tools."""

from heedful.training import tasks
from tests.cli.conftest import models

__all__ = ["models"]
tasks.add("tools.tasks")
