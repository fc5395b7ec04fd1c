"""text.roles on trees of the shipped parser; people judged which roles are exchanged."""

import pytest

from heedful.text.parse import Parser
from heedful.text.roles import are_roles_exchanged
from tests.shipped import BUNDLES
from tests.text.test_parse import read

EXCHANGED = """
Alice paid Bob. > Bob paid Alice.
the dog bit the man > the man bit the dog
Luke was thanked by the pilot. > The pilot was thanked by Luke.
The union was sued by the company. > The union sued the company yesterday.
John gave Mary a book. > Mary gave a book to John.
The server sends requests to the client. > The client sends requests to the server.
He told her the truth. > She told him the truth.
Anna is taller than Tom. > Tom is taller than Anna.
The lawyer who sued the doctor won. > The doctor sued the lawyer.
The nurse and the cook helped the guard. > The guard helped the cook.
"""
KEPT = """
Alice paid Bob. > Bob was paid by Alice.
John gave Mary a book. > Mary received a book from John.
Anna married Tom. > Tom married Anna.
Anna danced with Tom. > Tom danced with Anna.
The nurse helped the doctor, and the doctor helped the nurse. > The doctor helped the nurse.
Anna loves Tom and Tom loves Anna. > Tom loves Anna.
The cat sat on the mat. > The mat is under the cat.
Many restaurants welcome children. > Children are welcome in many restaurants.
He ran into her. > She ran.
Germany beat Brazil. > Brazil lost to Germany.
"""


@pytest.fixture(scope="module")
def shipped() -> Parser:
    return Parser.load(BUNDLES / "parser")


@pytest.mark.parametrize("pair", EXCHANGED.strip().splitlines())
def test_exchanged_roles(shipped: Parser, pair: str) -> None:
    premise, hypothesis = (read(shipped, text) for text in pair.split(" > "))
    assert are_roles_exchanged(premise, hypothesis)
    assert not are_roles_exchanged(premise, premise)
    flat = [read(shipped, text, tree=False) for text in pair.split(" > ")]
    assert not are_roles_exchanged(*flat)


@pytest.mark.parametrize("pair", KEPT.strip().splitlines())
def test_kept_roles(shipped: Parser, pair: str) -> None:
    first, second = (read(shipped, text) for text in pair.split(" > "))
    assert not are_roles_exchanged(first, second)
