"""Worker processes for long lists: each loads the bundle and answers chunks.

They run `work` in a fresh Python and talk over pipes, so that a script needs no `__main__` guard, as
multiprocessing does. A worker ends when its pipe is closed.
"""

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from heedful.runtime.errors import HeedfulError, Unavailable
from heedful.runtime.inputs import Inputs
from heedful.text.forks import renew_in_children

if TYPE_CHECKING:
    from heedful.library.model import Question

# A notebook's interrupt and Ctrl-C reach the workers too, even while they import: the caller's code decides.
START = f"""
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from {__name__} import work
work()
"""


class Processes:
    """Workers, which start with the first long list."""

    def __init__(self, size: int, keywords: Mapping[str, Any]) -> None:
        """`keywords` are those of `heedful.load`."""
        self._size = size
        self._keywords = {**keywords, "threads": 1}
        self._workers: list[_Worker] = []
        weakref.finalize(self, _end, self._workers)  # also at the exit, where nobody has closed it
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """See `text.forks`. The existing workers stay the parent's, which reads their pipes."""
        self._threads = ThreadPoolExecutor(self._size, "worker")
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._workers.clear()
        self._starting = threading.Lock()

    def answers(self, question: "Question", parts: Sequence[Inputs]) -> Iterator[Any]:
        """`Model.answer` to each part, in order. Raises what it raises, and Unavailable if a worker dies."""
        with self._starting:
            while len(self._workers) < self._size:
                worker = _Worker(self._keywords)
                self._workers.append(worker)
                self._free.put(worker)
        return self._threads.map(lambda part: self._answer(question, part), parts)

    def _answer(self, question: "Question", part: Inputs) -> Any:
        worker = self._free.get()
        try:
            return worker.answer(question, part)
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End the workers. What they are working on fails."""
        _end(self._workers)
        self._threads.shutdown(cancel_futures=True)


def _end(workers: "list[_Worker]") -> None:
    for worker in workers:
        worker.close()


class _Worker:
    def __init__(self, keywords: Mapping[str, Any]) -> None:
        import heedful

        package = Path(next(iter(heedful.__path__))).parent
        path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # The processes share the cores already; who sets another number means it.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path},
        )
        self._send(keywords)

    def answer(self, question: "Question", part: Inputs) -> Any:
        self._send((question, part))
        try:
            answer = pickle.load(self._pipe(self._process.stdout))
        except (EOFError, OSError) as error:
            raise Unavailable("a worker process died: load the model again") from error
        if isinstance(answer, HeedfulError):
            raise answer
        return answer

    def close(self) -> None:
        with self._process as process:  # whose end closes the pipes
            process.kill()

    def _send(self, value: Any) -> None:
        try:
            pipe = self._pipe(self._process.stdin)
            pickle.dump(value, pipe)
            pipe.flush()
        except OSError as error:
            raise Unavailable("a worker process died: load the model again") from error

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe, "Popen was asked for it"
        return pipe


def work() -> None:
    """Read the keywords of `heedful.load`, then answer questions until the pipe is closed."""
    from heedful.library.load import load

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not write between the answers
    questions = sys.stdin.buffer
    with load(**pickle.load(questions)) as model:
        while True:
            try:
                question, part = pickle.load(questions)
            except EOFError:
                return
            try:
                answer: Any = model.answer(question, part)
            except HeedfulError as error:
                answer = error
            pickle.dump(answer, answers)
            answers.flush()
