"""A user who presses Ctrl-C."""

import io
from typing import Any

from rich.console import Console


class Interrupted(Console):
    """Raises KeyboardInterrupt when a line that starts with `last` is about to be printed."""

    def __init__(self, last: str) -> None:
        super().__init__(file=io.StringIO())
        self.last = last

    def print(self, *objects: Any, **options: Any) -> None:
        if str(objects[0]).startswith(self.last):
            raise KeyboardInterrupt
        super().print(*objects, **options)
