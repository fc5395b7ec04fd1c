"""The fixtures of tests/cli that these tests use."""

from tests.cli.conftest import bundle, exported, glove, pipeline, stsb, toy

__all__ = ["bundle", "exported", "glove", "pipeline", "stsb", "toy"]
