"""The error of the parser, apart from `text.parse`, which takes seconds to import."""


class ParserError(Exception):
    """The spaCy pipeline cannot be used. The message names it and the remedy."""
