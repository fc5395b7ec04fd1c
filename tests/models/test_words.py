"""What becomes of ids: word tables, words in four bits, words composed from features; and changes of low rank."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.export.weight_storage import Storage, store_tables
from heedful.models.composed_words import SIGNATURE_WEIGHT, ComposedWords
from heedful.models.four_bit_embedding import FourBitEmbedding
from heedful.models.lora import add_lora, merge
from heedful.models.ms_san import MSSAN
from heedful.models.sentence import SentenceEncoder, word_table

INPUTS = torch.tensor([[4, 2, 8]]), torch.tensor([3]), torch.tensor([[1, 1, 1]]), torch.tensor(0.5)
SIGNATURE = 2
FEATURES = np.array([[5, 6, 7, 0, 1, 2], [8, 0, 0, 0, 2, 2]])
"""Of two composed words; the last two of each are its signature."""


def gradient(layer: nn.Module) -> Tensor:
    found = layer.get_parameter("weight").grad
    assert found is not None
    return found.to_dense()


def test_ids_become_word_vectors_and_what_is_explained_is_the_projected_vector() -> None:
    torch.manual_seed(0)
    table = word_table(torch.randn(9, 12), frozen=False)
    sentence = SentenceEncoder(table, MSSAN(dim=12)).eval()
    vectors = sentence.encoder(table(INPUTS[0]), *INPUTS[1:])
    assert torch.equal(sentence(*INPUTS), vectors)
    assert vectors.shape == (1, 24)
    projected = SentenceEncoder(table, sentence.encoder, nn.Linear(24, 5)).eval()
    assert projected(*INPUTS).shape == (1, 5)
    torch.testing.assert_close(projected.explain(*INPUTS).sentence, projected(*INPUTS))
    # The row of padding is zero, and training leaves it so.
    assert table.weight[0].abs().max() == 0
    heads, length = torch.tensor([[0, 1]]), torch.tensor([1])
    sentence(torch.tensor([[3, 0]]), length, heads, torch.tensor(1.0)).sum().backward()
    assert gradient(table)[0].abs().max() == 0
    assert gradient(table)[3].abs().max() > 0


def composed() -> ComposedWords:
    table = nn.Embedding(5, 4, padding_idx=0)
    words = ComposedWords(table, rows=9, signature=SIGNATURE)
    words.reset(torch.Generator().manual_seed(1))
    return words


def test_a_composed_word_is_the_mean_of_its_features_and_its_signature() -> None:
    words = composed()
    ids = np.array([[3, -1, 0], [-2, 4, -1]])
    table, rows = (one.weight.detach().numpy() for one in (words.table, words.features))
    expected = np.zeros((2, 3, 4))
    for b in range(2):
        for i in range(3):
            if ids[b, i] >= 0:
                expected[b, i] = table[ids[b, i]]
                continue
            mine = FEATURES[-ids[b, i] - 1]
            spelled = [rows[f] for f in mine[:-SIGNATURE] if f > 0]
            total = np.mean(spelled, axis=0)
            for f in mine[-SIGNATURE:]:
                total = total + SIGNATURE_WEIGHT * rows[f]
            expected[b, i] = total
    with torch.no_grad():
        found = words(torch.from_numpy(ids), torch.from_numpy(FEATURES)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    listed = torch.tensor([[1, 2, 0]])
    torch.testing.assert_close(words(listed, None), words.table(listed))


def test_the_signature_is_not_trained() -> None:
    words = composed()
    words.compose(torch.from_numpy(FEATURES[:1])).sum().backward()
    moved = gradient(words.features).abs().sum(1) > 0
    assert moved.tolist() == [i in (5, 6, 7) for i in range(9)]


@pytest.mark.parametrize("storage", ["normal", "small"])
def test_words_in_four_bits_are_read_as_a_bundle_stores_them_and_learn_as_others(
    storage: Storage,
) -> None:
    """Also of a small table, which would else be stored in 8 bits."""
    weights = torch.randn(50, 60, generator=torch.Generator().manual_seed(1))
    weights[0] = 0
    layer = word_table(weights, frozen=False, four_bits=True)
    assert isinstance(layer, FourBitEmbedding)
    ids, stored = torch.arange(50).view(5, 10), nn.Sequential(copy.deepcopy(layer))
    store_tables(stored, storage)
    torch.testing.assert_close(layer(ids), stored(ids), rtol=0, atol=0)
    plain = word_table(layer.weight.detach(), frozen=False)  # which rounds nothing
    pull = torch.randn(3, 60, generator=torch.Generator().manual_seed(2))
    for one in (layer, plain):
        (one(torch.tensor([3, 3, 7])) * pull).sum().backward()
    torch.testing.assert_close(gradient(layer), gradient(plain))


def test_lora_adds_a_product_of_two_small_matrices() -> None:
    """The two products that LoRA's equation (3) writes apart."""
    torch.manual_seed(0)
    rank, alpha = 3, 32
    layer, x = nn.Linear(7, 5), torch.randn(4, 7)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    before = layer(x)
    add_lora([layer], rank)
    assert torch.equal(layer(x), before)  # B is zero

    parts = dict(layer.named_parameters())
    down, up = (parts[f"parametrizations.weight.0.{name}"] for name in ("down", "up"))
    assert (down.shape, up.shape) == ((rank, 7), (5, rank))
    with torch.no_grad():
        up.copy_(torch.randn_like(up))
        down.copy_(torch.randn_like(down))
    expected = x @ weight.T + alpha / rank * (x @ down.T) @ up.T + bias
    torch.testing.assert_close(layer(x), expected)

    layer(x).sum().backward()
    moved = {name for name, one in layer.named_parameters() if one.grad is not None}
    assert moved == {"bias", "parametrizations.weight.0.down", "parametrizations.weight.0.up"}

    merge(nn.Sequential(layer, nn.ReLU()))
    assert set(layer.state_dict()) == {"weight", "bias"}
    torch.testing.assert_close(layer(x), expected)
