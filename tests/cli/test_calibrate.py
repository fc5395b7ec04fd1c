"""`heedful calibrate`: the temperature in the card divides the logits that are served."""

from pathlib import Path

import numpy as np
import pytest

from heedful.cli import selftest
from heedful.cli.calibrate import calibrate
from heedful.cli.local_model import open_folder
from heedful.export.bundle_writer import rewrite
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.text.parse import Parser
from heedful.training import tasks
from heedful.training.calibration import calibration_error
from heedful.training.errors import ConfigError, DataError, DataMissing
from tests.builders import BuiltParser, build_bundle

TREE = "({label} (2 the) ({label} (2 dog) ({label} (2 is) ({label} {word}))))"


@pytest.fixture
def sst(tmp_path: Path) -> Path:
    (tmp_path / "trees").mkdir()
    rng = np.random.default_rng(0)
    rows = [TREE.format(label=rng.choice([0, 4]), word=w) for w in ("good", "bad", "not", "a") * 5]
    (tmp_path / "trees/dev.txt").write_text("\n".join(rows))
    return tmp_path


def test_the_fitted_temperature_divides_the_served_logits(
    tmp_path: Path, sst: Path, pipeline: BuiltParser
) -> None:
    old = build_bundle(tmp_path, pipeline, name="tiny-sst2", explain=True)
    folder, parser = tmp_path / "tiny-sst2", str(pipeline.folder)
    examples = tasks.get("sst2").dev.read(sst)
    with open_folder(folder, parser) as model:
        before = model.logits(examples)
    made = calibrate(folder, data=sst, parser=parser)
    assert read(folder).card == made.card
    assert made.card.temperature != 1.0
    assert made.card.version != old.version
    assert (old.temperature, "temperature" in old.model_dump(exclude_defaults=True)) == (1.0, False)
    with open_folder(folder, parser) as model:
        after = model.logits(examples)
        text = examples[0].texts[0]
        served = model.loaded.predict_proba([text])
    np.testing.assert_allclose(after, before / made.card.temperature, rtol=1e-5)
    np.testing.assert_allclose(served, softmax(after[:1]), atol=1e-6)
    gold = np.array([one.label for one in examples])
    assert made.before == pytest.approx(calibration_error(softmax(before), gold), abs=1e-6)
    assert made.after == pytest.approx(calibration_error(softmax(after), gold), abs=1e-6)
    again = calibrate(folder, data=sst, parser=parser)  # a second time changes nothing
    assert again.card.temperature == pytest.approx(made.card.temperature, rel=1e-3)


def test_golden_vectors_hold_at_any_temperature(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    folder = tmp_path / "tiny-sst2"
    selftest.write_golden(folder, Parser.load(pipeline.folder))
    bundle = read(folder)
    rewrite(folder, {**bundle.card.fields(), "temperature": 3.0}, bundle.files)
    with open_folder(folder, str(pipeline.folder)) as model:  # else BundleError
        assert model.loaded.card.temperature == 3.0


def test_what_cannot_be_calibrated_says_why(tmp_path: Path, pipeline: BuiltParser) -> None:
    parser = str(pipeline.folder)
    build_bundle(tmp_path, pipeline, name="tiny-flat", kind="embedding", tree=False)
    with pytest.raises(ConfigError, match="tiny-flat gives no probabilities"):
        calibrate(tmp_path / "tiny-flat", data=tmp_path, parser=parser)
    build_bundle(tmp_path, pipeline, name="tiny-sst2", labels=("cold", "warm"))
    with pytest.raises(DataMissing):
        calibrate(tmp_path / "tiny-sst2", data=tmp_path, parser=parser)
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees/dev.txt").touch()
    with pytest.raises(DataError, match="sst2: its dev split has no example"):
        calibrate(tmp_path / "tiny-sst2", data=tmp_path, parser=parser)


def test_a_bundle_of_other_labels_than_the_task_is_refused(
    tmp_path: Path, sst: Path, pipeline: BuiltParser
) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2", labels=("cold", "warm"))
    with pytest.raises(ConfigError, match="has the labels cold, warm, its task negative, pos"):
        calibrate(tmp_path / "tiny-sst2", data=sst, parser=str(pipeline.folder))
