"""Errors of the parser and of graphs. The modules that raise them take seconds to import."""


class ParserError(Exception):
    """The spaCy pipeline cannot be used. The message names it and the remedy."""


class GraphError(Exception):
    """ONNX Runtime refuses a graph, or fails in it. The message is ONNX Runtime's."""
