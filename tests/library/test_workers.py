"""The processes of a loaded model: they need no guard and no torch, survive a fork and an interrupt, and end."""

import os
import signal
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.process import PATIENCE, ran

WORKERS = """
import os, signal, sys, time
from pathlib import Path

def workers():
    children = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    return [pid for pid in children if b"LokyProcess" in Path(f"/proc/{pid}/cmdline").read_bytes()]

import heedful
assert not {'numpy', 'spacy', 'onnxruntime'} & set(sys.modules)
def load(**options):
    return heedful.load("tiny-sst2", models=MODELS, processes=2, **options)
"""


def ended(models: Path, script: str) -> CompletedProcess[str]:
    """A script's run in a new session: an interrupt of its process group reaches no other process."""
    script = f"MODELS = {str(models)!r}\n{WORKERS}{script}"
    unset = [f"--unset={name}" for name in os.environ if "NUM_THREADS" in name]
    python = (sys.executable, "-W", "always::ResourceWarning", "-c", script)
    return ran("env", *unset, "setsid", *python)


SCRIPTS = {
    "a fork": f"""
from heedful.library import inputs as library_inputs
library_inputs.CHUNK = 300
texts = [f"two kids wash {{i}}" for i in range(500)]
model = load(threads=2)
for part in (texts[:300], texts):  # few texts are answered by its threads, many by its processes
    expected = model.encode(part, batch_size=2)
    child = os.fork()
    if not child:
        signal.alarm({PATIENCE / 2:.0f})  # where it hangs
        os._exit(0 if (model.encode(part, batch_size=2) == expected).all() else 1)
    print(os.waitpid(child, 0)[1], (model.encode(part, batch_size=2) == expected).all())
assert not {{'torch', 'fastapi', 'sklearn'}} & set(sys.modules)
""",
    "an interrupt": f"""
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process may ignore or block it
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
model = load()
print(model.encode(["kids"] * 2000).shape)
before = workers()
for child in before:
    variables = Path(f"/proc/{{child}}/environ").read_bytes().split(b"\\0")
    print([variable.decode() for variable in variables if variable.startswith(b"OPENBLAS_NUM_THREADS")])
try:
    os.killpg(0, signal.SIGINT)  # as a notebook's, which reaches the processes too
    time.sleep({PATIENCE})  # the interrupt may come a moment later
except KeyboardInterrupt:
    print(model.encode(["kids"] * 2000).shape, workers() == before)
""",
    "a dead worker": """
from heedful.runtime.errors import Unavailable
def encode(model):
    try:
        return model.encode(["kids"] * 2000)
    except Unavailable as error:
        print(error)
with load() as model:
    expected = encode(model)
    os.kill(int(workers()[0]), signal.SIGKILL)
    encode(model)
with load() as model:
    encode(model)
    for child in workers():
        os.kill(int(child), signal.SIGKILL)
    encode(model)
    print((encode(model) == expected).all())
encode(model)
for _ in range(50):
    time.sleep(0.1 * bool(workers()))
print(workers())
""",
}
THREADS, DIED = "['OPENBLAS_NUM_THREADS=1']\n", "a worker process died: try again\n"
PRINTED = {
    "a fork": "0 True\n0 True\n",
    "an interrupt": f"(2000, 8)\n{THREADS}{THREADS}(2000, 8) True\n",
    "a dead worker": f"{DIED}{DIED}True\nthe model is closed: load it again\n[]\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_processes_go_on_after(models: Path, name: str) -> None:
    """A model that is not closed ends them without a warning; where one dies the call fails, and no later one."""
    done = ended(models, SCRIPTS[name])
    assert done.stdout == PRINTED[name], done.stderr
    assert "ResourceWarning" not in done.stderr
    if name == "a dead worker":
        assert done.stderr == ""


def test_workers_end_when_their_parent_is_killed(models: Path) -> None:
    """The pipe that is read here is open until the last worker has ended."""
    encode = "print(load().encode(['kids'] * 2000).shape, flush=True)"
    done = ended(models, f"{encode}\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "(2000, 8)\n"), done.stderr
