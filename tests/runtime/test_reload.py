"""The folder of bundles changes while a service serves it."""

import asyncio
import gc
import os
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from heedful.runtime.engine import health
from heedful.runtime.errors import InferenceFailed, OutOfMemory, Unavailable
from heedful.runtime.inputs import Inputs
from heedful.runtime.out_of_distribution import SECONDS
from heedful.runtime.service import Options, Reloaded, Service
from heedful.text import graph
from heedful.text.parse import fingerprint
from tests.asking import embed
from tests.builders import BuiltParser, build_bundle
from tests.process import ran
from tests.runtime.conftest import Running, run
from tests.runtime.test_bundle import replace_file

NAME = "tiny-sst2"


class Served:
    """A service whose folder only these tests use."""

    def __init__(self, running: Running) -> None:
        self.running, self.service = running, running.service
        self.folder = running.service.options.models
        parser = self.folder / "parser"
        self.parser = BuiltParser(parser, "en_tiny", fingerprint(parser))

    def build(self, name: str = NAME, **card: Any) -> None:
        build_bundle(self.folder, self.parser, name=name, **card)

    def reload(self) -> Reloaded:
        return self.running.ask(self.service.reload())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.service.registry.cards)

    def vector(self) -> np.ndarray:
        row: np.ndarray = self.running.embed(["Two kids wash their hands"], NAME).value[0]
        return row


@pytest.fixture(scope="module")
def running(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = shutil.copytree(models, tmp_path_factory.mktemp("reloaded") / "models")
    with run(Options(folder, threads=1)) as running:
        yield running


@pytest.fixture
def served(running: Running, models: Path) -> Iterator[Served]:
    """The folder is restored and loaded again after the test."""
    served = Served(running)
    yield served
    shutil.rmtree(served.folder)
    shutil.copytree(models, served.folder)
    assert served.reload().refused == ()
    assert served.names == ("tiny-flat", "tiny-nli", "tiny-related", NAME)


def test_what_is_added_replaced_and_removed_is_picked_up_together(served: Served) -> None:
    """Unchanged bundles are not loaded again."""
    before, old = served.vector(), dict(served.service.registry.models)
    served.build(alpha=0.25)
    served.build("tiny-new", kind="embedding")
    shutil.rmtree(served.folder / "tiny-nli")
    np.testing.assert_array_equal(served.vector(), before)  # nothing changes unasked
    assert served.reload() == Reloaded(
        loaded=("tiny-new", NAME), unchanged=("tiny-flat", "tiny-related"), removed=("tiny-nli",)
    )
    assert served.names == ("tiny-flat", "tiny-new", "tiny-related", NAME)
    models = served.service.registry.models
    assert models[NAME].card.version != old[NAME].card.version
    assert models["tiny-flat"] is old["tiny-flat"]
    assert np.abs(served.vector() - before).max() > 0.01
    assert served.service.ready() is None


def test_a_session_that_fails_is_tried_again_and_forgotten_with_its_model(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served.service
    session = service.registry.models[NAME].encoder.session
    works = session.run
    errors: list[Exception] = []
    runs: list[object] = []

    def run(feeds: Any) -> Any:
        runs.append(feeds)
        if errors:
            raise errors[0]
        return works(feeds)

    def fail(error: Exception) -> None:
        errors[:] = [error]
        with pytest.raises(InferenceFailed):
            served.running.embed(["a sentence that is not in the cache"], NAME)

    async def until(asked: Callable[[], bool]) -> None:
        while not asked():
            await asyncio.sleep(0.01)

    monkeypatch.setattr(session, "run", run)
    monkeypatch.setattr(health, "RETRY_SECONDS", 0.01)
    fail(RuntimeError("the device is gone"))
    served.running.ask(until(lambda: service.fault() is not None))
    assert f"the session of {NAME} has failed 5 times" in str(service.fault())
    errors.clear()
    served.vector()
    assert service.ready() is None
    fail(RuntimeError("again"))
    assert NAME in str(service.ready())
    errors.clear()
    served.running.ask(until(lambda: service.ready() is None))  # without a request
    runs.clear()
    fail(OutOfMemory("of the device"))
    served.running.ask(asyncio.sleep(0.05))
    assert len(runs) == 1  # no fault of the session: one token is not tried
    fail(MemoryError())
    served.running.ask(until(lambda: service.ready() is not None))
    served.build(alpha=0.25)
    served.reload()
    assert service.ready() is None


def cut(bundle: Path) -> None:
    (bundle / "encoder.onnx").write_bytes((bundle / "encoder.onnx").read_bytes()[:-1])


def test_bad_bundles_leave_the_old_models_and_the_others_way_free(served: Served) -> None:
    """A new one that is bad is not offered."""
    before, folder = served.vector(), served.folder
    for name in ("tiny-bad", "tiny-new"):
        served.build(name, kind="embedding")
    cut(folder / "tiny-bad")
    (folder / "tiny-nli" / "card.json").unlink()
    build_bundle(folder, BuiltParser(folder, "en_other", "0" * 64), name="tiny-related")
    cut(folder / NAME)
    done = served.reload()
    for reason, expected in zip(
        done.refused,
        (
            "bundle tiny-bad: encoder.onnx: not the file that card.json names",
            "bundle tiny-nli: card.json: cannot be read: No such file",
            "bundle tiny-related: card.json: was made with the parser en_other",
            f"bundle {NAME}: encoder.onnx: not the file that ",
        ),
        strict=True,
    ):
        assert reason.startswith(expected)
    assert str(folder) not in "".join(done.refused)
    assert served.service.refused == done.refused
    assert (done.loaded, done.removed) == (("tiny-new",), ())
    assert served.names == ("tiny-flat", "tiny-new", "tiny-nli", "tiny-related", NAME)
    np.testing.assert_array_equal(served.vector(), before)
    assert served.service.ready() is None


def test_a_graph_that_never_ends_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later reloads are not kept by it."""
    before, file = served.vector(), served.folder / NAME / "encoder.onnx"
    served.build(alpha=0.25)
    replace_file(file.parent, file.name, endless(file.read_bytes()))
    with monkeypatch.context() as patched:
        patched.setattr(graph, "RUN_SECONDS", 0.5)
        (line,) = served.reload().refused
    assert line.startswith(f"bundle {NAME}: encoder.onnx: does not run on ")
    assert line.endswith("terminate flag being set to true.")
    served.build(alpha=0.25)
    assert served.reload().loaded == (NAME,)
    assert np.abs(served.vector() - before).max() > 0.01


def endless(encoder: bytes) -> bytes:
    """The graph, with a Loop without an end between its vectors and its output."""
    model = onnx.load_from_string(encoder)
    for node in model.graph.node:
        node.output[:] = ["ended" if name == "embedding" else name for name in node.output]
    loop = onnx.parser.parse_graph("""loop (float[] ended) => (float[] embedding) {
        most = Constant <value: tensor = int64 {9223372036854775807}> ()
        true = Constant <value: tensor = bool {1}> ()
        embedding = Loop (most, true, ended) <
            body = turn (int64 number, bool going, float[] carried)
                => (bool still_going, float[] carried_on) {
                still_going = Identity (going)
                carried_on = Identity (carried)
            }
        >
    }""")
    model.graph.node.extend(loop.node)
    serialised: bytes = model.SerializeToString()
    return serialised


LIST = """
import pathlib, sys
from heedful.runtime.bundles.loader import BundleLoader
print(BundleLoader(pathlib.Path(sys.argv[1]), 'cpu', 1)._bundles())
"""


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    """The folder may hold another user's bundle, or be a disk's lost+found."""
    (tmp_path / "bundle").mkdir(mode=0)
    # Without what lets root into every folder.
    right = () if os.geteuid() else ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    command = [*right, sys.executable, "-c", LIST, str(tmp_path)]
    done = ran(*command)
    assert done.stdout == "[]\n"
    assert f"{tmp_path}/bundle is ignored: this user may not enter it" in done.stderr


def test_the_last_models_stay_when_the_folder_is_empty(served: Served) -> None:
    for name in served.names:
        shutil.rmtree(served.folder / name)
    done = served.reload()
    assert "no longer holds a bundle" in done.refused[0]
    assert (done.loaded, done.removed) == ((), ())
    assert served.vector().shape == (8,)


def test_a_bundle_that_is_away_between_two_renames_is_not_taken_for_removed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, away = served.folder / NAME, served.folder / "away"
    bundle.rename(away)
    monkeypatch.setattr("time.sleep", lambda _: away.rename(bundle))
    assert served.reload().removed == ()


def test_a_request_keeps_its_model_which_goes_with_it(served: Served) -> None:
    before, service = served.vector(), served.service
    old = weakref.ref(service.registry.models[NAME])
    session = weakref.ref(service.registry.models[NAME].encoder.session)

    async def scenario() -> np.ndarray:
        bound = service.bind("embed", NAME)
        await service.reload()
        request = bound.embed(Inputs.from_texts(["Two kids wash their hands"]))
        answer: np.ndarray = (await service.answer(request)).value[0]
        return answer

    served.build(alpha=0.25)
    np.testing.assert_allclose(served.running.ask(scenario()), before, atol=1e-6)
    assert np.abs(served.vector() - before).max() > 0.01
    served.running.ask(asyncio.sleep(2 * SECONDS))  # until its last vectors are counted
    gc.collect()
    assert old() is None
    assert session() is None


def test_reloads_take_turns_and_end_with_the_service(models: Path) -> None:
    async def scenario() -> None:
        service = Service(Options(models, threads=1))
        starting = asyncio.create_task(service.start())
        await asyncio.sleep(0)
        done = await asyncio.gather(*(service.reload() for _ in range(3)))
        assert starting.done()  # a reload waits for the start
        assert done == [Reloaded(unchanged=tuple(service.registry.cards))] * 3
        await service.stop(timeout=1)
        with pytest.raises(Unavailable, match="stopping"):
            await service.reload()
        with pytest.raises(Unavailable, match="stopping"):
            await embed(service, ["dog"])

    asyncio.run(scenario())
