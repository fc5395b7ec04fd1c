"""What stops a run before it begins, or an evaluation: each message names file or field, and the remedy."""


class TrainingError(Exception):
    """The root of them."""


class ConfigError(TrainingError):
    """The configuration cannot be used."""


class DataMissing(TrainingError):
    """A file of a dataset is not there: where to get it and how it is laid out."""


class DataError(TrainingError):
    """A file is there, and a line of it is not what it should be."""


class RunMissing(TrainingError):
    """A run's folder does not hold what a finished run leaves."""
