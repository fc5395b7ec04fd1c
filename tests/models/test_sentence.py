import torch

from heedful.models.ms_san import MSSAN
from heedful.models.sentence import SentenceEncoder, word_table


def model(*, frozen: bool = True) -> SentenceEncoder:
    torch.manual_seed(0)
    return SentenceEncoder(word_table(torch.randn(9, 12), frozen=frozen), MSSAN(dim=12)).eval()


def table(sentence: SentenceEncoder) -> torch.nn.Parameter:
    return sentence.embedding.get_parameter("weight")


def test_ids_become_word_vectors() -> None:
    sentence = model()
    ids, lengths = torch.tensor([[4, 2, 8]]), torch.tensor([3])
    heads, alpha = torch.tensor([[1, 1, 1]]), torch.tensor(0.5)
    vectors = sentence.embedding(ids)
    expected = sentence.encoder(vectors, lengths, heads, alpha)
    assert torch.equal(sentence(ids, lengths, heads, alpha), expected)
    assert expected.shape == (1, 24)


def test_what_is_explained_is_the_projected_vector() -> None:
    plain = model()
    sentence = SentenceEncoder(plain.embedding, plain.encoder, torch.nn.Linear(24, 5)).eval()
    inputs = torch.tensor([[4, 2, 8]]), torch.tensor([3]), torch.tensor([[1, 1, 1]])
    alpha = torch.tensor(0.5)
    vector = sentence(*inputs, alpha)
    assert vector.shape == (1, 5)
    torch.testing.assert_close(sentence.explain(*inputs, alpha).sentence, vector)


def test_the_table_has_a_zero_padding_row_that_training_leaves_zero() -> None:
    sentence = model(frozen=False)
    assert table(sentence)[0].abs().max() == 0
    ids = torch.tensor([[3, 0]])
    sentence(ids, torch.tensor([1]), torch.tensor([[0, 1]]), torch.tensor(1.0)).sum().backward()
    gradient = table(sentence).grad
    assert gradient is not None
    assert gradient[0].abs().max() == 0
    assert gradient[3].abs().max() > 0
