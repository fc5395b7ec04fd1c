"""The wheel, installed as the image installs it into a new virtual environment: it serves without torch."""

import json
import shutil
import sys
import venv
import zipfile
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest

from benchmarks.processes import bundles
from heedful.text.parse import Parser
from tests.deploy.test_docker import COPIED, LOCKED, OWN, SLIM
from tests.process import PATIENCE, ROOT, Process, output
from tests.writing import put

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    return output("env", "-u", "PYTHONPATH", "-u", "VIRTUAL_ENV", *command, cwd=cwd)


def pip(python: Path, *arguments: str | Path, cwd: Path = ROOT) -> None:
    """Run this environment's pip for another one: to install it there would take seconds."""
    quiet = ("--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, *quiet, *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with what the service needs, by hashes."""
    folder = tmp_path_factory.mktemp("serving")
    venv.create(folder)
    python = folder / "bin" / "python"
    # What is not imported is not compiled, which takes a while.
    pip(python, *(one for one in LOCKED if one != "--no-cache-dir"), "--no-compile")
    return python


@pytest.fixture(scope="module")
def wheel(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a clean copy of what the Dockerfile copies."""
    source = tmp_path_factory.mktemp("source")
    for name in {*COPIED} - {"bundles"}:
        if (ROOT / name).is_dir():
            stale = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=stale)
        else:
            shutil.copy(ROOT / name, source / name)
    pip(locked, "wheel", *OWN[1:], "--wheel-dir", "dist", cwd=source)
    [built] = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def python(locked: Path, wheel: Path) -> Path:
    """The interpreter of an environment with the wheel, without the parts that the CPU's image lacks."""
    pip(locked, "install", "--no-index", "--no-deps", wheel)
    run("sh", "-c", SLIM.replace("/opt/heedful", str(locked.parent.parent)))
    return locked


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A user's project with packages named like our folders."""
    folder = tmp_path / "hostile"
    for name in ("app", "cli", "export", "models", "runtime", "text", "training"):
        put(folder, f"{name}/__init__.py", f"raise ImportError('the user's own {name}')\n")
    return folder


def test_the_wheel_has_one_top_level_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packages = {name.partition("/")[0] for name in names}
    assert {name for name in packages if not name.endswith(".dist-info")} == {"heedful"}
    assert {"heedful/py.typed", "heedful/app/static/index.html"} <= set(names)
    assert {
        f"heedful/{name}/__init__.py" for name in COPIED if (ROOT / "heedful" / name).is_dir()
    } <= set(names)


def test_it_imports_and_serves_in_a_project_with_the_same_names(
    python: Path, hostile: Path, tmp_path: Path
) -> None:
    run(python, "-c", "import heedful, heedful.app.application, heedful.text", cwd=hostile)
    with bundles(["ms-san-sst2"], ROOT / "bundles") as models:
        flags = {"models": str(models), "port": "0", "processes": "1"}
        service = Process(tmp_path / "log", flags, {}, [python.with_name("heedful")], hostile)
        with closing(service):
            body = {"inputs": "Two kids."}
            answer = httpx.post(service.ready() + "/embed", json=body, timeout=PATIENCE)
            assert answer.status_code == 200, answer.text


def test_what_trains_imports_in_a_project_with_the_same_names(hostile: Path) -> None:
    """In the development environment: it needs torch."""
    modules = ("cli.main", "cli.fit", "export.run", "models.registry", "training.loop")
    run(sys.executable, "-c", "".join(f"import heedful.{one};" for one in modules), cwd=hostile)


def test_spacy_alone_loads_the_shipped_pipeline(python: Path, tmp_path: Path) -> None:
    """By entry points: the script imports nothing of Heedful's. In two processes, and from a copy that spaCy wrote."""
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys, spacy\n"
        "def rows(docs): return [[(t.text, t.idx, t.head.i, t.dep_) for t in doc] for doc in docs]\n"
        "if __name__ == '__main__':\n"
        "    texts = ['It isn’t  <b>good</b> &amp; cheap.', 'Two kids wash their hands.'] * 6\n"
        "    nlp = spacy.load(sys.argv[1])\n"
        "    first = rows(nlp.pipe(texts, n_process=2, batch_size=3))\n"
        "    nlp.to_disk('copy')\n"
        "    assert first == rows(map(spacy.load('copy'), texts))\n"
        "    print(json.dumps(first))\n"
    )
    found = json.loads(run(python, script, ROOT / "bundles" / "parser", cwd=tmp_path))
    parser = Parser.load(ROOT / "bundles" / "parser")
    (kids,) = parser.parse(["Two kids wash their hands."], 64, tree=True)
    expected = zip(kids.tokens, kids.starts, kids.heads.tolist(), kids.deps, strict=True)
    assert list(map(tuple, found[-1])) == list(expected)
    assert [text for text, *_ in found[0]][:5] == ["It", "is", "n’t", " <b>", "good"]


def test_it_holds_what_the_package_asks_for_and_no_torch(python: Path) -> None:
    pip(python, "check")
    found = (
        "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('onnxruntime').name)"
    )
    assert run(python, "-c", found).split() == ["None", "onnxruntime"]


@pytest.fixture(scope="module")
def with_bundles(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same interpreter with the wheel of the bundles, built as `make wheels` builds it."""
    source = tmp_path_factory.mktemp("bundles")
    packaging = shutil.copytree(
        ROOT / "packaging" / "heedful-bundles",
        source / "packaging" / "heedful-bundles",
        symlinks=True,
        ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"),
    )
    (source / "bundles").symlink_to(ROOT / "bundles")
    pip(python, "wheel", *OWN[1:-1], "--wheel-dir", "dist", packaging, cwd=source)
    pip(python, "install", "--no-index", "--no-deps", *(source / "dist").iterdir(), cwd=source)
    return python


def test_both_wheels_are_all_that_an_empty_folder_needs(with_bundles: Path, tmp_path: Path) -> None:
    """One request to each shipped bundle, and the same bits from `heedful.load`."""
    folder = tmp_path / "empty"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(
        "import heedful, json, sys\n"
        "vectors = heedful.load('ms-san-embed').encode(['Two kids wash their hands.'])\n"
        "assert 'torch' not in sys.modules\n"
        "print(json.dumps(vectors.tolist()))\n"
    )
    loaded = json.loads(run(with_bundles, script, cwd=folder))
    heedful, reviews = with_bundles.with_name("heedful"), tmp_path / "reviews.csv"
    reviews.write_text("text\nI love it\n")
    predict = ("predict", reviews, "--model", "ms-san-sentiment", "--out", "-")
    assert "\nI love it,positive," in run(heedful, *predict, cwd=folder)
    for command in ("distill", "tune"):  # which need torch to run
        assert "heedful" in run(heedful, command, "--help", cwd=folder).partition("Example:")[2]
    service = Process(tmp_path / "log", {"port": "0", "processes": "2"}, {}, [heedful], folder)
    with closing(service), httpx.Client(base_url=service.ready(), timeout=PATIENCE) as client:
        shipped = {path.parent.name for path in (ROOT / "bundles").glob("*/card.json")}
        assert {one["name"] for one in client.get("/models").json()["models"]} == shipped
        for name in shipped:
            body = {"inputs": ["Two kids wash their hands."], "model": name}
            answer = client.post("/embed", json=body)
            assert answer.status_code == 200, answer.text
            if name == "ms-san-embed":
                np.testing.assert_array_equal(np.float32(answer.json()), np.float32(loaded))
    assert list(folder.iterdir()) == []
