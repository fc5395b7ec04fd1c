"""Sentence encoders as their folders say: vectors equal the transformer's own states of one text, pooled by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import BertModel

from heedful.text.arrays import Floats
from heedful.training import teachers
from heedful.training.errors import ConfigError, DataMissing
from tests.builders import build_pieces
from tests.transformer import LIMIT, tiny_encoder

DIM = 16
TEXTS = ["two kids wash their hands", "", "kids " * 400, "good", *["the dog is bad"] * 40]
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
PROMPTS = {"prompts": {"query": "the man "}, "default_prompt_name": "query"}


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
        ({"1_Pooling/config": {"pooling_mode": "cls"}}, 12, "cls", ""),
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
    unit = loaded.unit_vectors(TEXTS)
    assert_allclose(unit, found / np.linalg.norm(found, axis=1, keepdims=True), rtol=1e-6)
    assert loaded.vectors([]).shape == (0, DIM)


def test_a_folder_that_says_so_is_read_in_lower_case(tmp_path: Path) -> None:
    lower = {"sentence_bert_config": {"max_seq_length": 12, "do_lower_case": True}}
    folder = tiny_encoder(tmp_path / "encoder", DIM, **lower)
    assert teachers.load(str(folder)).read("Two KIDS") == "two kids"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"1_Pooling/config": {"pooling_mode_max_tokens": True}}, "pools by max: mean or cls"),
        ({"1_Pooling/config": CLS | {"pooling_mode_mean_tokens": True}}, "pools by cls, mean"),
        ({"modules": [{"path": "2", "type": "models.Dense"}]}, "modules.json has Dense"),
        (
            {
                "config_sentence_transformers": PROMPTS,
                "1_Pooling/config": {"include_prompt": False},
            },
            "leaves its prompt out",
        ),
    ],
)
def test_what_is_not_read_is_refused(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    folder = tiny_encoder(tmp_path / "encoder", DIM, **files)
    with pytest.raises(ConfigError, match=said):
        teachers.load(str(folder))


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataMissing, match="bert is no sentence encoder: name minilm, mpnet"):
        teachers.load("bert")
    monkeypatch.setattr(teachers, "MPNET_FOLDER", tmp_path / "nowhere")
    with pytest.raises(DataMissing, match="scripts/models/all-mpnet-base-v2"):
        teachers.load(teachers.MPNET)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataMissing, match="owner/name is no folder, and the hub does not give it"):
        teachers.load("owner/name")


def test_vectors_are_known_by_the_files_of_the_encoder(tmp_path: Path) -> None:
    first = tiny_encoder(tmp_path / "first", DIM)
    same = tiny_encoder(tmp_path / "same", DIM)
    other = tiny_encoder(tmp_path / "other", DIM, **{"1_Pooling/config": CLS})
    known = [teachers.identity(str(one)) for one in (first, same, other)]
    assert known[0] == known[1] != known[2]


@pytest.fixture(scope="module")
def minilm() -> teachers.Teacher:
    return teachers.load(teachers.MINILM)


def test_minilm_reads_as_its_files_say(minilm: teachers.Teacher) -> None:
    assert minilm.settings == teachers.Settings(256, "mean", normalize=True)
    assert minilm.size == teachers.MINILM_SIZE


def test_half_of_the_precision_moves_no_vector_far(minilm: teachers.Teacher) -> None:
    texts = ["Two kids wash their hands.", "ÄÖÜ ßxq zzyzx qwrtz", "the government of the country"]
    whole, half = (
        one.unit_vectors(texts) for one in (minilm, teachers.load(teachers.MINILM, half=True))
    )
    assert np.linalg.norm(whole - half, axis=1).max() < 0.03
