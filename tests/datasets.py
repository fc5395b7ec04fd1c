"""The datasets, for the tests that read them as they lie in the data folder."""

import os

import pytest

from heedful.training.data_folder import PAGE, VARIABLE, data_folder

DATA = data_folder()
needs_data = pytest.mark.skipif(
    not DATA.is_dir() and VARIABLE not in os.environ,
    reason=f"there is no {DATA}/: put the datasets there or name their folder in {VARIABLE} ({PAGE})",
)
"""Skips a test where no folder was named and there is none. In a folder that was named every dataset must be."""
