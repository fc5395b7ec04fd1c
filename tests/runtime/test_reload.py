"""The folder of bundles changes while a service serves it."""

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.inputs import Inputs
from heedful.runtime.out_of_distribution import SECONDS
from heedful.runtime.service import Options, Reloaded, Service
from heedful.text import graph
from heedful.text.parse import fingerprint
from tests.asking import embed
from tests.builders import BuiltParser, build_bundle
from tests.process import PATIENCE
from tests.runtime.conftest import Running
from tests.runtime.test_bundle import replace_file

TEXT = "Two kids wash their hands"
NAME = "tiny-sst2"


@pytest.fixture(scope="module")
def served(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose folder only these tests use."""
    folder = tmp_path_factory.mktemp("reloaded") / "models"
    shutil.copytree(models, folder)
    with asyncio.Runner() as runner:
        service = Service(Options(folder, threads=1))
        runner.run(service.start())
        yield Running(service, runner)
        runner.run(service.stop(timeout=5))


@pytest.fixture
def folder(served: Running, models: Path) -> Iterator[Path]:
    """The folder, restored and loaded again after the test."""
    folder = served.service.options.models
    yield folder
    shutil.rmtree(folder)
    shutil.copytree(models, folder)
    assert served.ask(served.service.reload()).refused == ()
    assert list(served.service.registry.cards) == ["tiny-flat", "tiny-nli", NAME]


@pytest.fixture(scope="module")
def parser(models: Path) -> BuiltParser:
    return BuiltParser(models / "parser", "en_tiny", fingerprint(models / "parser"))


def vector(served: Running, model: str = NAME) -> np.ndarray:
    row: np.ndarray = served.ask(embed(served.service, [TEXT], model=model)).value[0]
    return row


def test_what_is_added_replaced_and_removed_is_picked_up_together(
    served: Running, folder: Path, parser: BuiltParser
) -> None:
    before, old = vector(served), served.service.registry.cards[NAME]
    build_bundle(folder, parser, name=NAME, alpha=0.25)
    build_bundle(folder, parser, name="tiny-new", kind="embedding")
    shutil.rmtree(folder / "tiny-nli")
    np.testing.assert_array_equal(vector(served), before)  # nothing changes unasked
    assert served.ask(served.service.reload()) == Reloaded(
        loaded=("tiny-new", NAME), unchanged=("tiny-flat",), removed=("tiny-nli",)
    )
    assert list(served.service.registry.cards) == ["tiny-flat", "tiny-new", NAME]
    assert served.service.registry.cards[NAME].version != old.version
    assert np.abs(vector(served) - before).max() > 0.01
    assert served.service.ready() is None


def test_a_session_that_fails_is_forgotten_with_its_model(
    served: Running, folder: Path, parser: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(feeds: object) -> None:
        raise MemoryError

    service = served.service
    monkeypatch.setattr(service.registry.models[NAME].encoder.session, "run", fail)
    with pytest.raises(InferenceFailed):
        served.ask(embed(service, ["a sentence that is not in the cache"], model=NAME))

    async def not_ready() -> str:
        while not (reason := service.ready()):
            await asyncio.sleep(0.01)
        return reason

    assert NAME in served.ask(not_ready())
    build_bundle(folder, parser, name=NAME, alpha=0.25)
    served.ask(service.reload())
    assert service.ready() is None


def test_what_has_not_changed_is_not_loaded_again(served: Running, folder: Path) -> None:
    models = dict(served.service.registry.models)
    done = served.ask(served.service.reload())
    assert done == Reloaded(unchanged=tuple(models))
    for name, model in served.service.registry.models.items():
        assert model is models[name]


def cut(bundle: Path) -> None:
    (bundle / "encoder.onnx").write_bytes((bundle / "encoder.onnx").read_bytes()[:-1])


def without_card(bundle: Path) -> None:
    (bundle / "card.json").unlink()


def of_another_parser(bundle: Path) -> None:
    build_bundle(bundle.parent, BuiltParser(bundle, "en_other", "0" * 64), name=bundle.name)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (cut, "bundle tiny-sst2: encoder.onnx: not the file that card.json names"),
        (without_card, "bundle tiny-sst2: card.json: cannot be read: No such file"),
        (of_another_parser, "bundle tiny-sst2: card.json: was made with the parser en_other"),
    ],
)
def test_a_bad_bundle_leaves_the_old_model_and_the_others_way_free(
    served: Running,
    folder: Path,
    parser: BuiltParser,
    spoil: Callable[[Path], None],
    reason: str,
) -> None:
    before = vector(served)
    spoil(folder / NAME)
    build_bundle(folder, parser, name="tiny-new", kind="embedding")
    done = served.ask(served.service.reload())
    (line,) = done.refused
    assert line.startswith(reason)
    assert str(folder) not in line
    assert served.service.refused == done.refused
    assert (done.loaded, done.removed) == (("tiny-new",), ())
    np.testing.assert_array_equal(vector(served), before)
    assert served.service.ready() is None


@pytest.mark.parametrize(
    ("file", "reason"),
    [("encoder.onnx", "does not run on "), ("explain.onnx", "does not open, or does not run: ")],
)
def test_a_graph_that_never_ends_is_refused(
    served: Running,
    folder: Path,
    parser: BuiltParser,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    reason: str,
) -> None:
    """Later reloads are not kept by it."""
    before = vector(served)
    build_bundle(folder, parser, name=NAME, alpha=0.25, explain=True)
    replace_file(folder / NAME, file, endless((folder / NAME / file).read_bytes()))
    with monkeypatch.context() as patched:
        patched.setattr(graph, "RUN_SECONDS", 0.5)
        (line,) = served.ask(served.service.reload()).refused
    assert line.startswith(f"bundle {NAME}: {file}: {reason}")
    assert line.endswith("terminate flag being set to true.")
    build_bundle(folder, parser, name=NAME, alpha=0.25)
    assert served.ask(served.service.reload()).loaded == (NAME,)
    assert np.abs(vector(served) - before).max() > 0.01


def endless(encoder: bytes) -> bytes:
    """The graph, with a Loop without an end between its vectors and its output."""
    model = onnx.load_from_string(encoder)
    made = model.graph
    name = made.output[0].name
    for node in made.node:
        node.output[:] = ["ended" if one == name else one for one in node.output]
    boolean, floats = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT
    info = onnx.helper.make_tensor_value_info
    body = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Identity", ["going"], ["still_going"]),
            onnx.helper.make_node("Identity", ["carried"], ["carried_on"]),
        ],
        "body",
        [
            info("number", onnx.TensorProto.INT64, []),
            info("going", boolean, []),
            info("carried", floats, None),
        ],
        [info("still_going", boolean, []), info("carried_on", floats, None)],
    )
    true = onnx.helper.make_tensor("true", boolean, [], [True])
    made.initializer.append(true)
    made.node.append(onnx.helper.make_node("Loop", ["", "true", "ended"], [name], body=body))
    serialised: bytes = model.SerializeToString()
    return serialised


def test_a_new_bundle_that_is_bad_is_not_offered(
    served: Running, folder: Path, parser: BuiltParser
) -> None:
    build_bundle(folder, parser, name="tiny-new", kind="embedding")
    cut(folder / "tiny-new")
    assert len(served.ask(served.service.reload()).refused) == 1
    assert "tiny-new" not in served.service.registry.cards
    shutil.rmtree(folder / "tiny-new")
    assert served.ask(served.service.reload()).refused == served.service.refused == ()


def test_a_link_may_lead_to_a_folder_of_another_name(
    served: Running, folder: Path, parser: BuiltParser, tmp_path: Path
) -> None:
    build_bundle(tmp_path, parser, name=NAME, alpha=0.25)
    release = (tmp_path / NAME).rename(tmp_path / "release-2")
    shutil.rmtree(folder / NAME)
    (folder / NAME).symlink_to(release)
    done = served.ask(served.service.reload())
    assert done == Reloaded(loaded=(NAME,), unchanged=("tiny-flat", "tiny-nli"))


def test_a_link_with_another_name_is_no_second_model(served: Running, folder: Path) -> None:
    models = tuple(served.service.registry.cards)
    (folder / "current").symlink_to(NAME)
    done = served.ask(served.service.reload())
    reason = f"bundle current: card.json: names the model '{NAME}': the folder must have that name"
    assert done == Reloaded(unchanged=models, refused=(reason,))
    assert tuple(served.service.registry.cards) == models


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    """It may hold a bundle that another user has put there, or be a disk's lost+found."""
    (tmp_path / "bundle").mkdir(mode=0)
    load = (
        "import pathlib, sys\n"
        "from heedful.runtime.bundles.loader import BundleLoader\n"
        "print(BundleLoader(pathlib.Path(sys.argv[1]), 'cpu', 1)._bundles())"
    )
    # Without what lets root into every folder.
    right = () if os.geteuid() else ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    done = subprocess.run(
        [*right, sys.executable, "-c", load, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert f"{tmp_path}/bundle is passed over: this user may not enter it" in done.stderr


def test_the_last_models_stay_when_the_folder_is_empty(served: Running, folder: Path) -> None:
    for name in served.service.registry.cards:
        shutil.rmtree(folder / name)
    done = served.ask(served.service.reload())
    assert "no longer holds a bundle" in done.refused[0]
    assert (done.loaded, done.removed) == ((), ())
    assert vector(served).shape == (8,)


def test_a_bundle_that_is_away_between_two_renames_is_not_taken_for_removed(
    served: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / NAME).rename(folder / "away")
    monkeypatch.setattr("time.sleep", lambda _: (folder / "away").rename(folder / NAME))
    assert served.ask(served.service.reload()).removed == ()


def test_a_request_keeps_its_model_which_goes_with_it(
    served: Running, folder: Path, parser: BuiltParser
) -> None:
    before = vector(served)
    old = weakref.ref(served.service.registry.models[NAME])
    session = weakref.ref(served.service.registry.models[NAME].encoder.session)

    async def scenario() -> np.ndarray:
        bound = served.service.bind("embed", NAME)
        await served.service.reload()
        request = bound.embed(Inputs.from_texts([TEXT]))
        answer: np.ndarray = (await served.service.answer(request)).value[0]
        return answer

    build_bundle(folder, parser, name=NAME, alpha=0.25)
    np.testing.assert_allclose(served.ask(scenario()), before, atol=1e-6)
    assert np.abs(vector(served) - before).max() > 0.01
    served.ask(asyncio.sleep(2 * SECONDS))  # until its last vectors are counted
    gc.collect()
    assert old() is None
    assert session() is None


def test_reloads_take_turns_and_end_with_the_service(models: Path, parser: BuiltParser) -> None:
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

    asyncio.run(scenario())
