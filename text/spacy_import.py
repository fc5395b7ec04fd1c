"""spaCy without its command line, which `import spacy` brings along: a quarter of its time to import, and
16 MB in each process that reads texts."""

import importlib
import sys
from types import ModuleType


def _import_without_command_line() -> None:
    """Stand-ins while spaCy is imported; whoever asks for the command line later gets the real one."""
    if "spacy" in sys.modules:
        return
    info = ModuleType("spacy.cli.info")
    info.info = None  # type: ignore[attr-defined]  # the one name that spaCy's package takes from it
    stubs = {"spacy.cli": ModuleType("spacy.cli"), "spacy.cli.info": info}
    sys.modules.update(stubs)
    try:
        importlib.import_module("spacy")
    finally:
        for name in stubs:
            del sys.modules[name]


_import_without_command_line()
