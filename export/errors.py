"""The errors that export raises on purpose."""


class ExportError(Exception):
    """A checkpoint cannot become a bundle; the message is for the user. Nothing was written."""


class ParityError(ExportError):
    """The exported graphs and the torch model disagree."""
