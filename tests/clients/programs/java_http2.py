"""Java's HttpClient, which asks for an upgrade to HTTP/2."""

import subprocess
from pathlib import Path
from typing import Any

from tests.clients.programs.common import run


def check(url: str) -> dict[str, Any]:
    program = Path(__file__).with_name("Http2Client.java")
    done = subprocess.run(["java", program, url], capture_output=True, text=True, check=True)
    return {"HttpClient.newHttpClient(), POST /embed": done.stdout.strip()}


if __name__ == "__main__":
    run(check)
