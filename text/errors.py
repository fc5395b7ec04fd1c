"""The one error of reading text; apart from `text.parse`, which takes seconds to import with spaCy."""


class ParserError(Exception):
    """The spaCy pipeline cannot be used; the message names it and the remedy."""
