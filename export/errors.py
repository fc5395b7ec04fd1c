"""Every error that export raises on purpose."""


class ExportError(Exception):
    """A checkpoint cannot become a bundle; the message is for the user. Nothing was written."""


class ParityError(ExportError):
    """The exported graphs do not give what the torch model gives."""
