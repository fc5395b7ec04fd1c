"""Whether the encoders work: a batch that fails may be a bad input or a broken session.

The encoder runs on a single token, every RETRY_SECONDS until it succeeds or has failed FAILURES times: a process that
is not ready gets no requests by which it could notice that a fault has passed.
"""

import asyncio
import logging
from collections.abc import MutableMapping
from weakref import WeakKeyDictionary

from heedful.runtime.engine.session import EncoderRunner

log = logging.getLogger(__name__)

FAILURES = 5
"""A session that fails on a single token this many times in a row needs a new process."""
RETRY_SECONDS = 1.0


class Health:
    """Only the event loop's thread may use it."""

    def __init__(self) -> None:
        self.failures: MutableMapping[EncoderRunner, int] = WeakKeyDictionary()
        """How often in a row an encoder failed on a single token. Encoders that a reload replaces drop out."""
        self._checks: dict[EncoderRunner, asyncio.Task[None]] = {}

    def check(self, encoder: EncoderRunner) -> None:
        """Check the encoder in the background."""
        if encoder not in self._checks:
            self._checks[encoder] = asyncio.create_task(self._check(encoder))

    def stop(self) -> None:
        for check in self._checks.values():
            check.cancel()

    async def _check(self, encoder: EncoderRunner) -> None:
        try:
            while self._probe_fails(encoder) and self.failures[encoder] < FAILURES:
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            del self._checks[encoder]

    def _probe_fails(self, encoder: EncoderRunner) -> bool:
        try:
            encoder.probe()
        except Exception:  # whatever a session raises
            log.exception("the session of %s fails on one token", encoder.name)
            self.failures[encoder] = self.failures.get(encoder, 0) + 1
            return True
        self.failures.pop(encoder, None)
        return False
