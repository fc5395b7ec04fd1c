"""A transformer's bundle: its vectors come from its hidden states, whatever spaCy takes for words."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from tokenizers import Tokenizer
from transformers import BertModel

import heedful
from heedful.export.transformer_bundle import import_encoder
from heedful.runtime.errors import BadInput
from heedful.text.arrays import Floats
from heedful.text.parse import Parser
from tests.builders import build_parser
from tests.transformer import tiny_encoder

DIM = 16
TEXTS = [
    "two kids wash their hands",
    "the dog's bad, isn't it?",  # spaCy: is n't; BERT's own: isn ' t
    "cannot",  # spaCy: two words of one piece's text
    "  GOOD \t kids.  ",
    "a 😀 b — c…",
    "kids " * 40,
]


def by_hand(folder: Path, text: str, prompt: str = "") -> Floats:
    """Mean of the states of at most twelve pieces, read alone; of length 1."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode(prompt + text.lower()).ids
    ids = [*ids[:11], ids[-1]] if len(ids) > 12 else ids
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    with torch.inference_mode():
        states = model(torch.tensor([ids])).last_hidden_state[0].numpy()
    mean = states.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    parser = Parser.load(build_parser(folder / "parser").folder)
    asked = {"prompts": {"q": "kids wash "}, "default_prompt_name": "q"}
    for name, files in {"plain": {}, "asked": {"config_sentence_transformers": asked}}.items():
        encoder = tiny_encoder(folder.parent / f"{folder.name}-{name}", DIM, **files)
        card = import_encoder(str(encoder), folder / name, parser, int8=False, command="import")
        assert card.whole_text
        assert card.pieces
    encoder = folder.parent / f"{folder.name}-plain"
    import_encoder(str(encoder), folder / "int8", parser, int8=True, command="import")
    return folder


@pytest.mark.parametrize(("name", "prompt"), [("plain", ""), ("asked", "kids wash ")])
def test_vectors_are_those_of_the_whole_text(models: Path, name: str, prompt: str) -> None:
    encoder = models.parent / f"{models.name}-{name}"
    with heedful.load(models / name) as model:
        found = model.encode(TEXTS)
        alone = np.concatenate([model.encode([text]) for text in TEXTS])
    assert_allclose(found, [by_hand(encoder, text, prompt) for text in TEXTS], atol=1e-4)
    assert_allclose(found, alone, atol=1e-5)


def test_in_int8_vectors_are_near_and_the_card_says_how_near(models: Path) -> None:
    with heedful.load(models / "plain") as exact, heedful.load(models / "int8") as rounded:
        cosines = (exact.encode(TEXTS) * rounded.encode(TEXTS)).sum(axis=1)
        said = rounded.card.int8
    assert said is not None
    assert said.cosine > 0.95
    assert cosines.min() > 0.95
    assert cosines.min() < 1 - 1e-7, "the int8 graph is what runs"


def test_a_long_text_is_cut_only_where_that_is_asked_for_and_none_is_explained(
    models: Path,
) -> None:
    with heedful.load(models / "plain") as model:
        with pytest.raises(BadInput, match="longer than plain reads"):
            model.encode(TEXTS[-1:], truncate=False)
        assert len(model.encode(["kids " * 10], truncate=False)) == 1
        with pytest.raises(BadInput, match="an imported encoder has no explanation"):
            model.explain("two kids")
