"""The service that a command asks: one that runs, or one of a bundle's own for the while."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn

from heedful.app import settings
from heedful.app.main import create_app
from heedful.app.serving import listen
from heedful.app.state import state_of
from heedful.runtime.card import CARD
from heedful.runtime.errors import StartupError
from heedful.training import evaluate

TIMEOUT = 60
"""Seconds until an answer is given up."""
POLL = 0.05


@contextmanager
def server(model: str, *, url: str, parser: str) -> Iterator[evaluate.Server]:
    """`model` is the name of a bundle that `url` serves, or the folder of one, which is served here,
    on a free port.

    Raises StartupError where the folder's bundle cannot be.
    """
    folder = Path(model)
    with httpx.Client(timeout=TIMEOUT) as client:
        if not (folder / CARD).is_file():
            yield evaluate.Server(url, model, client)
            return
        with _serving(folder.resolve(), parser) as own:
            yield evaluate.Server(own, folder.resolve().name, client)


@contextmanager
def _serving(bundle: Path, parser: str) -> Iterator[str]:
    """URL of a service on this bundle alone, in a thread of this process, once it is ready."""
    with tempfile.TemporaryDirectory() as models:
        (Path(models) / bundle.name).symlink_to(bundle)
        app = create_app(settings.load(models=models, parser=parser))
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
        serving = uvicorn.Server(config)
        listener = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=serving.run, args=([listener],))
        thread.start()
        try:
            while not (serving.started and state_of(app).starting.done()):
                if not thread.is_alive():
                    raise StartupError(f"the service of {bundle.name} ended while it started")
                time.sleep(POLL)
            if failure := state_of(app).starting.exception():
                raise failure
            yield url
        finally:
            serving.should_exit = True
            thread.join()
