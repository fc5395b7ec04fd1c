"""The one error of files of texts."""


class BulkError(Exception):
    """A file cannot be read, written or gone on with; the message names it, the line, the remedy."""
