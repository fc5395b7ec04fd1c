"""Java's HttpClient, which asks for an upgrade to HTTP/2."""

import subprocess
from pathlib import Path
from typing import Any

from tools.clients.programs.common import run


def check(url: str) -> dict[str, Any]:
    program = Path(__file__).with_name("Http2Client.java")
    done = subprocess.run(["java", program, url], capture_output=True, text=True, check=True)
    if done.stdout.strip() != "200 true":
        raise SystemExit(f"it got {done.stdout.strip()}")
    return {"HttpClient.newHttpClient(), POST /embed": True}


if __name__ == "__main__":
    run(check)
