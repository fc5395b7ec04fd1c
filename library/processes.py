"""Worker processes for long lists: each loads the bundle and answers chunks.

They are loky's: unlike with multiprocessing, a script needs no `__main__` guard, and a worker's death is noticed.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

from heedful.runtime.errors import Unavailable
from heedful.runtime.inputs import Inputs
from heedful.text.forks import ForkSafe

if TYPE_CHECKING:
    from heedful.library.model import Model, Question

BLAS_THREADS = "OPENBLAS_NUM_THREADS"


class Processes(ForkSafe):
    """A pool of workers, which starts with the first long list. Threads may share it."""

    def __init__(self, size: int, keywords: Mapping[str, Any]) -> None:
        """`keywords` are those of `heedful.load`."""
        self._size = size
        self._keywords = {**keywords, "threads": 1}
        self._is_closed = False
        super().__init__()

    def renew(self) -> None:
        """The workers remain the parent's; a child starts others."""
        super().renew()
        self._pool: ProcessPoolExecutor | None = None

    def answers(self, question: "Question", parts: Sequence[Inputs]) -> Iterator[Any]:
        """`Model.answer` to each part, in order. Raises what it raises.

        Raises Unavailable if a worker dies, or once the pool is closed. The next call starts new workers.
        """
        pool = self._start()
        try:
            yield from pool.map(partial(_answer, self._keywords, question), parts)
        except BrokenProcessPool as error:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            raise Unavailable("a worker process died: try again") from error
        except ShutdownExecutorError as error:
            raise Unavailable("the model is closed: load it again") from error

    def close(self) -> None:
        """End the workers. Their answers fail."""
        with self._lock:
            pool, self._pool, self._is_closed = self._pool, None, True
        if pool:
            pool.shutdown(wait=False, kill_workers=True)

    def _start(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._is_closed:
                raise Unavailable("the model is closed: load it again")
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self._size,
                    timeout=None,
                    initializer=_start_worker,
                    initargs=(os.getpid(),),
                    # The workers use all cores already. A number that the user sets is kept.
                    env={BLAS_THREADS: os.environ.get(BLAS_THREADS, "1")},
                )
            return self._pool


def _start_worker(parent: int) -> None:
    # A notebook's interrupt and Ctrl-C reach the workers too: only the caller's process handles them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: int) -> None:
    """End this worker when its parent has ended, also if that was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _answer(keywords: Mapping[str, Any], question: "Question", part: Inputs) -> Any:
    return _model(**keywords).answer(question, part)


@cache
def _model(**keywords: Any) -> "Model":
    """The worker's model."""
    from heedful.library.load import load

    return load(**keywords)
