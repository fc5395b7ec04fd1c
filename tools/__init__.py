"""What serves this repository alone: the papers' tables and figures, their records, and the pages written from them.

`python -m tools` lists the commands. The wheel does not hold them.
"""
