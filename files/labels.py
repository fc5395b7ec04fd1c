"""The spelling of a label, which is the same for all formats and programs."""

import re

_WHOLE = re.compile(r"-?[0-9]+\.0")


def spelled(label: str) -> str:
    """The label without outer blanks; true for Excel's TRUE, pandas' True and JSON's true, and 1 for pandas' 1.0."""
    label = label.strip()
    if label.lower() in ("true", "false"):
        return label.lower()
    return label.removesuffix(".0") if _WHOLE.fullmatch(label) else label
