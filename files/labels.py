"""How a label is spelled: the same in every format and by every program that writes it."""

import re

_WHOLE = re.compile(r"-?[0-9]+\.0")


def spelled(label: str) -> str:
    """Without blanks around it. Excel writes TRUE, pandas True and JSON true for the same, and pandas 1.0 for 1."""
    label = label.strip()
    if label.lower() in ("true", "false"):
        return label.lower()
    return label.removesuffix(".0") if _WHOLE.fullmatch(label) else label
