"""Sentence encoders as their folders say, and their vectors: read once for each text, kept, and mixed.

Below them the transformer of a run: what is loaded, what is refused, what is trained at which rate."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import BertModel

from heedful.text.arrays import Floats
from heedful.training import teacher_vectors, teachers, transformer
from heedful.training.config import (
    DistillationConfig,
    OptimiserConfig,
    RunConfig,
    TransformerConfig,
)
from heedful.training.errors import ConfigError, DataMissing
from heedful.training.model import TrainingModel, make_model
from heedful.training.objectives import Distillation
from heedful.training.optimise import make_optimisers
from heedful.training.tasks.base import Example
from heedful.training.teachers import unit
from tests.builders import build_pieces, random_texts
from tests.transformer import LIMIT, tiny_encoder, tiny_folder

DIM = 12
WEIGHTS = "model.safetensors"
TEXTS = ["two kids wash their hands", "", "kids " * 400, "good", *["the dog is bad"] * 40]
DISTINCT = list(dict.fromkeys(random_texts(20)))
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
PROMPTS = {"prompts": {"query": "the man "}, "default_prompt_name": "query"}
UNPROMPTED = {"1_Pooling/config": {"include_prompt": False}}


def by_hand(folder: Path, text: str, longest: int, pooling: str) -> Floats:
    """The pieces that the words of `text` have, read alone and without padding."""
    pieces = build_pieces(LIMIT)
    ids, _ = pieces.split(text.split())
    ids = np.concatenate([[pieces.cls], ids[: longest - 2], [pieces.sep]])
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    with torch.inference_mode():
        states = model(torch.from_numpy(ids)[None]).last_hidden_state[0].numpy()
    vector: Floats = states[0] if pooling == "cls" else np.mean(states, axis=0)
    return vector


@pytest.mark.parametrize(
    ("files", "longest", "pooling", "prompt"),
    [
        ({}, 12, "mean", ""),
        ({"1_Pooling/config": CLS}, 12, "cls", ""),
        ({"1_Pooling/config": {"pooling_mode": ["mean"]}}, 12, "mean", ""),
        ({"modules": [], "sentence_bert_config": {}}, LIMIT, "mean", ""),
        ({"config_sentence_transformers": PROMPTS}, 12, "mean", "the man "),
    ],
)
def test_vectors_are_the_pooled_states_of_each_text_alone(
    tmp_path: Path, files: dict[str, Any], longest: int, pooling: str, prompt: str
) -> None:
    folder = tiny_encoder(tmp_path / "encoder", DIM, **files)
    loaded = teachers.load(str(folder))
    found = loaded.vectors(TEXTS)
    assert found.shape == (len(TEXTS), loaded.size) == (len(TEXTS), DIM)
    for text, vector in zip(TEXTS[:5], found, strict=False):
        expected = by_hand(folder, prompt + text, longest, pooling)
        with torch.inference_mode():
            exact = loaded.pooled([text, "good bad"], longest)[0].numpy()
        assert_allclose(exact, expected, atol=1e-5)
        # In bfloat16.
        assert np.linalg.norm(vector - expected) < 0.03 * np.linalg.norm(expected)
    normed = loaded.unit_vectors(TEXTS)
    assert_allclose(normed, found / np.linalg.norm(found, axis=1, keepdims=True), rtol=1e-6)
    assert loaded.vectors([]).shape == (0, DIM)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"1_Pooling/config": {"pooling_mode_max_tokens": True}}, "pools by max: only mean and"),
        ({"modules": [{"path": "2", "type": "models.Dense"}]}, "modules.json has Dense"),
        ({"config_sentence_transformers": PROMPTS, **UNPROMPTED}, "leaves its prompt out"),
    ],
)
def test_what_is_not_read_is_refused(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    folder = tiny_encoder(tmp_path / "encoder", DIM, **files)
    with pytest.raises(ConfigError, match=said):
        teachers.load(str(folder))


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "MPNET_FOLDER", tmp_path / "nowhere")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name, said in (
        ("bert", "bert is no sentence encoder: name minilm, mpnet"),
        (teachers.MPNET, "scripts/models/all-mpnet-base-v2"),
        ("owner/name", "is no folder, and it cannot be downloaded from the hub"),
    ):
        with pytest.raises(DataMissing, match=said):
            teachers.load(name)


def test_the_files_of_an_encoder_are_its_identity_and_say_how_it_reads(tmp_path: Path) -> None:
    lower = {"sentence_bert_config": {"max_seq_length": 12, "do_lower_case": True}}
    kinds: dict[str, dict[str, Any]] = {"first": {}, "same": {}, "other": lower}
    folders = [str(tiny_encoder(tmp_path / name, DIM, **kinds[name])) for name in kinds]
    known = [teachers.identity(one) for one in folders]
    assert known[0] == known[1] != known[2]
    assert teachers.load(folders[2]).prepared("Two KIDS") == "two kids"


def test_minilm_reads_as_its_files_say_and_half_of_the_precision_moves_no_vector_far(
    tmp_path: Path,
) -> None:
    minilm = teachers.load(teachers.MINILM)
    assert minilm.settings == teachers.Settings(256, "mean", normalize=True)
    assert minilm.size == teachers.MINILM_SIZE
    texts = ["Two kids wash their hands.", "ÄÖÜ ßxq zzyzx qwrtz", "the government of the country"]
    examples = [Example((text,), 0) for text in texts]
    half = Distillation(DistillationConfig(), tmp_path, "cpu").targets(examples)
    assert np.linalg.norm(minilm.unit_vectors(texts) - half, axis=1).max() < 0.03


def random_units(rows: int, size: int, seed: int = 1) -> Floats:
    return unit(np.random.default_rng(seed).standard_normal((rows, size)).astype(np.float32))


def test_a_rotation_of_the_axes_is_turned_back_and_keeps_cosines() -> None:
    axes = random_units(200, 6)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))
    wider = np.hstack([axes @ turn.astype(np.float32), np.zeros((200, 4), np.float32)])
    assert_allclose(teacher_vectors.rotated(wider, axes), axes, atol=1e-5)
    low = random_units(100, 5) @ random_units(5, 12, 3)  # of rank 5, in 12 dimensions
    turned = teacher_vectors.rotated(low, random_units(100, 5, 4))
    assert_allclose(turned @ turned.T, low @ low.T, atol=1e-5)


def test_two_teachers_are_halfway_between_both(tmp_path: Path) -> None:
    count = len(DISTINCT)
    first = random_units(count, 8)
    near = first + 0.02 * random_units(count, 8, 5)
    second = unit(np.hstack([near, random_units(count, 4, 6)]))
    files = [str(tmp_path / "first.npy"), str(tmp_path / "second.npy")]
    for file, vectors in zip(files, (3 * first, second), strict=True):
        np.save(file, vectors)
        teacher_vectors.keep(file, DISTINCT, np.load(file), tmp_path)
    both = teacher_vectors.targets(files, DISTINCT, tmp_path, "cpu").astype(np.float32)
    assert_allclose(both, unit(first + teacher_vectors.rotated(second, first)), atol=2e-3)
    alone = teacher_vectors.targets(files[:1], DISTINCT, tmp_path, "cpu")
    assert_allclose(alone, first, atol=1e-3)
    with pytest.raises(DataMissing, match=r"first\.npy has no vector of the text 'other'"):
        teacher_vectors.stored_vectors(files[0], ["other"], tmp_path, "cpu")


def test_a_stopped_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_vectors, "PART", 4)
    name, cache = str(tiny_encoder(tmp_path / "encoder", DIM)), tmp_path / "cache"
    left: list[int] = []

    def stop(count: int) -> None:
        left.append(count)
        if len(left) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teacher_vectors.stored_vectors(name, DISTINCT, cache, "cpu", stop)
    left.clear()
    twice = [*DISTINCT, *DISTINCT[:3]]
    found = teacher_vectors.stored_vectors(name, twice, cache, "cpu", left.append)
    assert left[0] == len(DISTINCT) - 8, "two parts of four texts were stored"
    assert left[-1] == 0
    expected = teachers.load(name, half=True).unit_vectors(DISTINCT)
    assert_allclose(found[: len(DISTINCT)], expected, atol=0.02)
    np.testing.assert_array_equal(found[len(DISTINCT) :], found[:3])
    left.clear()
    again = teacher_vectors.stored_vectors(name, twice, cache, "cpu", left.append)
    np.testing.assert_array_equal(again, found)
    assert left == [0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_folder(tmp_path, DIM)


def config(folder: Path, over: Mapping[str, Any] = {}, **fields: Any) -> RunConfig:
    """A run over the transformer in `folder`."""
    start = {"task": "sst2", "licence": "CC0-1.0", "encoder": {"name": "ms-san-bert"}}
    over = {"name": str(folder), "dim": DIM, "rate": 2e-5, **over}
    return RunConfig.model_validate({**start, "transformer": over, **fields})


def section(run: RunConfig) -> TransformerConfig:
    assert run.transformer is not None
    return run.transformer


def model(run: RunConfig, kind: Any = "classification", classes: int = 2) -> TrainingModel:
    return make_model(run, kind, classes, transformer.load(section(run))[0])


@pytest.mark.parametrize(
    ("file", "change", "dim", "said"),
    [
        ("config.json", lambda one: one, 384, "has 12 features, not 384"),
        ("tokenizer.json", None, DIM, "is neither minilm, mpnet nor a folder of"),
        *(
            (file, lambda one: one[:20], DIM, r"transformer\.name: .* cannot be loaded")
            for file in ("config.json", WEIGHTS, "tokenizer.json")
        ),
        (
            *("config.json", lambda one: one.replace(b'"bert"', b'"roberta"'), DIM),
            "holds a model of type roberta, not bert",
        ),
    ],
)
def test_what_is_no_transformer_is_refused(
    folder: Path, file: str, change: Callable[[bytes], bytes] | None, dim: int, said: str
) -> None:
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    if change:
        (folder / file).write_bytes(change(content))
    with pytest.raises(ConfigError, match=said):
        model(config(folder, {"dim": dim}))


def test_more_frozen_layers_than_there_are_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"transformer\.frozen_layers: .* has 1 layers, not 2"):
        model(config(folder, {"frozen_layers": 2}))


@pytest.mark.parametrize(
    ("frozen", "layers", "moving"),
    [((), 0, "all"), ((), 1, "none"), (("transformer",), 0, "none"), (("pieces",), 0, "layers")],
)
def test_its_trained_layers_have_a_separate_rate(
    folder: Path, frozen: tuple[str, ...], layers: int, moving: str
) -> None:
    """Its one layer is its lowest one."""
    run = config(folder, {"frozen_layers": layers}, freeze=frozen)
    module, _ = transformer.load(section(run), freeze_pieces="pieces" in frozen)
    whole = make_model(run, "classification", 2, module).train()
    assert module.training is ("transformer" not in frozen)  # it drops out as when it was trained
    (adam,) = make_optimisers(*whole.parameter_groups(section(run)), OptimiserConfig(rate=1e-3))
    groups = adam.param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert set(rates) == {id(p) for p in whole.parameters() if p.requires_grad}
    names = {name for name, _ in module.named_parameters()}
    names -= {"embeddings.word_embeddings.weight"} if moving == "layers" else set()
    own = {name: rates.pop(id(p)) for name, p in module.named_parameters() if id(p) in rates}
    assert own == dict.fromkeys(names if moving != "none" else (), 2e-5)
    assert set(rates.values()) == {1e-3}


def test_lora_adapters_are_all_that_is_trained_and_kept(folder: Path) -> None:
    run = config(folder, {"lora_rank": 32})
    trained = model(run)
    inside = "sentence.embedding.transformer."
    moving = {name for name, p in trained.named_parameters() if p.requires_grad}
    adapted = {name.removeprefix(inside) for name in moving if name.startswith(inside)}
    assert {name.rsplit(".", 1)[1] for name in adapted} == {"down", "up", "bias", "weight"}
    assert {name for name in adapted if name.endswith(".weight")} == {
        "encoder.layer.0.attention.output.LayerNorm.weight",
        "encoder.layer.0.output.LayerNorm.weight",
    }
    learned = trained.trained_state_dict()
    assert set(learned) == moving
    other = model(run)
    other.load_trained(learned)
    for name, one in trained.state_dict().items():
        assert torch.equal(other.state_dict()[name], one)
    with pytest.raises(RuntimeError, match=r"weights of another model: head\.layers\.1\.bias"):
        other.load_trained({n: one for n, one in learned.items() if n != "head.layers.1.bias"})
