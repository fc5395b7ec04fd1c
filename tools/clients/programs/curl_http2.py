"""curl --http2 and --compressed, which ask for an upgrade to HTTP/2 and for a compressed answer."""

import json
import subprocess
from typing import Any

from tools.clients.programs.common import MODEL, SENTENCES, run


def check(url: str) -> dict[str, Any]:
    body = json.dumps({"inputs": SENTENCES, "model": MODEL})
    done = subprocess.run(
        [
            *("curl", "--silent", "--fail", "--http2", "--compressed", "--max-time", "60"),
            *("-H", "Content-Type: application/json", "--data-binary", "@-", f"{url}/embed"),
        ],
        input=body.encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"curl ended with status {done.returncode}")
    return {"--http2 --compressed, POST /embed": len(json.loads(done.stdout))}


if __name__ == "__main__":
    run(check)
