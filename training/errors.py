"""Errors of training and evaluation. Each message names the file or field, and the remedy."""


class TrainingError(Exception):
    """The base class."""


class ConfigError(TrainingError):
    """The configuration cannot be used."""


class DataMissing(TrainingError):
    """A dataset's file is missing; the message says where to get it."""


class DataError(TrainingError):
    """A line of a file cannot be used."""


class RunMissing(TrainingError):
    """A folder does not hold a finished run."""


class RunDamaged(TrainingError):
    """A file of a run cannot be read, or does not fit the others."""
