"""The plain install alone, in a new virtual environment: it serves, and it holds no torch."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEST_TOOLS = ("pytest", "httpx", "hypothesis", "onnx", "openai", "pyyaml", "schemathesis")
"""What the serving tests need beside the service; none of it asks for torch."""


def run(*command: str | Path, **environment: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the plain install and the tools of its tests."""
    folder = tmp_path_factory.mktemp("serving")
    venv.create(folder, with_pip=True)
    interpreter = folder / "bin" / "python"
    pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--constraint", "constraints.txt", ".", *TEST_TOOLS)
    return interpreter


def test_it_holds_no_torch(python: Path) -> None:
    found = (
        "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('onnxruntime').name)"
    )
    assert run(python, "-c", found).split() == ["None", "onnxruntime"]


@pytest.mark.slow
def test_it_passes_the_serving_tests(python: Path) -> None:
    """Those that between them import and run all that serves; the others differ in what they ask."""
    assert Path(sys.executable) != python
    output = run(
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/text",
        "tests/runtime/test_explain.py",
        "tests/runtime/test_int8.py",
        "tests/runtime/test_pieces.py",
        "tests/runtime/test_service.py",
        "tests/runtime/test_workers.py",
        "tests/app/test_answers.py",
        "tests/app/test_clients.py",
        "tests/app/test_explain.py",
        "tests/app/test_process.py",
        "tests/app/test_reload.py",
        "tests/app/test_tei.py",
    )
    assert " passed" in output
    assert "failed" not in output


def test_it_serves_the_shipped_bundles(python: Path) -> None:
    """One request to each, in process, through the application as the server runs it."""
    program = """
import asyncio
from pathlib import Path
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service

async def main():
    service = Service(Options(models=Path("bundles")))
    await service.start()
    for name, card in service.cards.items():
        result = await service.bind("embed", name).embed(
            Inputs.from_texts(["Two kids wash their hands."])
        )
        print(name, result.value.shape[1] == card.dimension)
    await service.stop(1)

if __name__ == "__main__":
    asyncio.run(main())
"""
    file = python.parent / "ask.py"
    file.write_text(program)
    answers = dict(line.split() for line in run(python, file).splitlines())
    assert set(answers) >= {"ms-san-nli", "ms-san-sst2", "ms-san-sst5"}
    assert set(answers.values()) == {"True"}
