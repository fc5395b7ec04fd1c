"""A device that stands still: in a process started with this folder on its path, ONNX Runtime runs no model while
the file $HELD exists. What runs on the main thread, the parser, continues. No model runs there: the device is too slow
for that at all times.
"""

import os
import threading
import time
from pathlib import Path
from typing import Any

import onnxruntime

SLOW_SECONDS = 0.02
"""Several times heedful.runtime.engine.scheduler.QUICK_SECONDS."""
_run = onnxruntime.InferenceSession.run


def _held(self: Any, *arguments: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():
        time.sleep(SLOW_SECONDS)
        while Path(os.environ["HELD"]).exists():
            time.sleep(0.01)
    return _run(self, *arguments)


onnxruntime.InferenceSession.run = _held
