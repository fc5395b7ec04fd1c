"""spaCy without its command line: not imported when texts are read, and available to later imports."""

import subprocess
import sys


def test_the_command_line_is_left_out_until_it_is_asked_for() -> None:
    program = (
        "import sys, heedful.text.parse; "
        "assert not [name for name in sys.modules if name.startswith('spacy.cli')]; "
        "from spacy.cli.train import train; "
        "assert callable(train)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
