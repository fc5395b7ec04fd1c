"""The fixtures of tests/cli that these tests use."""

from tests.cli.conftest import glove, pipeline, stsb

__all__ = ["glove", "pipeline", "stsb"]
