import torch

from heedful.models.ms_san import MSSAN
from heedful.models.sentence import Encoder, SentenceEncoder, word_table


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


def test_the_word_under_padding_does_not_matter() -> None:
    sentence = model()
    lengths, heads = torch.tensor([2]), torch.tensor([[1, 1, 2, 3]])
    first = sentence(torch.tensor([[4, 2, 0, 0]]), lengths, heads, torch.tensor(0.5))
    second = sentence(torch.tensor([[4, 2, 8, 1]]), lengths, heads, torch.tensor(0.5))
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)


def test_the_table_has_a_zero_padding_row_that_training_leaves_zero() -> None:
    sentence = model(frozen=False)
    assert table(sentence)[0].abs().max() == 0
    ids = torch.tensor([[3, 0]])
    sentence(ids, torch.tensor([1]), torch.tensor([[0, 1]]), torch.tensor(1.0)).sum().backward()
    gradient = table(sentence).grad
    assert gradient is not None
    assert gradient[0].abs().max() == 0
    assert gradient[3].abs().max() > 0


def test_a_frozen_table_is_not_trained() -> None:
    assert not table(model()).requires_grad
    assert table(model(frozen=False)).requires_grad


def test_structure_that_is_not_read_is_ignored() -> None:
    class Average(Encoder):
        dim, inputs = 12, ()

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return x.sum(1) / lengths[:, None]

    sentence = SentenceEncoder(word_table(torch.randn(9, 12), frozen=True), Average())
    vector = sentence(torch.tensor([[1, 2]]), torch.tensor([2]), heads=torch.tensor([[0, 0]]))
    assert vector.shape == (1, 12)
