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
The red team beat the blue team. > The blue team beat the red team.
Maria sold her car to Peter. > Maria bought a car from Peter.
Nora bought a watch from Ivan. > Nora sold a watch to Ivan.
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
Maria sold her car to Peter. > Peter bought a car from Maria.
The red team beat the blue team. > The blue team was beaten by the red team.
"""


@pytest.mark.parametrize(("pairs", "expected"), [(EXCHANGED, True), (KEPT, False)])
def test_exchanged_roles_are_told_from_kept_ones(pairs: str, expected: bool) -> None:
    """Never of a text and itself, nor without trees."""
    shipped = Parser.load(BUNDLES / "parser")
    for pair in pairs.strip().splitlines():
        premise, hypothesis = (read(shipped, text) for text in pair.split(" > "))
        assert are_roles_exchanged(premise, hypothesis) == expected, pair
        assert not are_roles_exchanged(premise, premise)
        assert not are_roles_exchanged(*(read(shipped, t, tree=False) for t in pair.split(" > ")))
