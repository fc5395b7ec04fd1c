"""The fixtures of tests/cli that these tests use, and the tasks of the shipped models."""

from heedful.training import tasks
from tests.cli.conftest import bundle, exported, glove, models, pipeline, stsb, toy

tasks.add("tools.tasks")

__all__ = ["bundle", "exported", "glove", "models", "pipeline", "stsb", "toy"]
