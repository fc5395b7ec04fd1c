"""Training of the dependency parser that ships (`python -m tools.parser`); `text/arc_parser.py` runs it."""
