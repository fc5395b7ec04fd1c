"""text.factuality on trees of the shipped parser; people judged what a premise says as a fact."""

import pytest

from heedful.text.factuality import is_stated
from heedful.text.parse import Parser
from tests.shipped import BUNDLES
from tests.text.test_parse import read

UNSTATED = """
She thinks the bank is closed. > The bank is closed.
She tried to fix the tap. > She fixed the tap.
He used to live in Rome. > He lives in Rome.
The twins pretend to be asleep. > The twins were asleep.
Either Theo or Mia has the key. > Mia has the key.
We may open an office in Lyon. > We open an office in Lyon.
If the bus comes, we will be on time. > We will be on time.
Unless the banker waited, the tourist left. > The banker waited.
Is Tim married? > Tim is married.
Have you fed the cat? > You have fed the cat.
Everyone except John came. > John came.
Paul, but not Lisa, has a key. > Lisa has a key.
I bought apples instead of pears. > I bought pears.
Ann is 30 and Bea is 40. > Ann is 40.
The soup was hot and the tea was cold. > The soup was cold.
The doctor near the actor danced. > The actor danced.
"""
STATED = """
She knows that the bank is closed. > The bank is closed.
She managed to fix the tap. > She fixed the tap.
When the bell rang, the children left. > The bell rang.
If it rains, we stay. > If it rains, we stay at home.
Is Tim married? > Is Tim married to Ann?
The pool is heated, isn't it? > The pool is heated.
Alice and Bob left. > Bob left.
Ann is 30 and Bea is 40. > Bea is 40.
The man who left early sang. > The man left early.
A group of people wait. > People wait.
He waved when his train was called. > He was called.
Ann thinks so. > So
"""


@pytest.mark.parametrize(("pairs", "expected"), [(UNSTATED, False), (STATED, True)])
def test_facts_are_told_from_reports_conditions_and_others_deeds(
    pairs: str, expected: bool
) -> None:
    """A text states itself, and without trees nothing is told."""
    shipped = Parser.load(BUNDLES / "parser")
    for pair in pairs.strip().splitlines():
        premise, hypothesis = (read(shipped, text) for text in pair.split(" > "))
        assert is_stated(premise, hypothesis) == expected, pair
        assert is_stated(premise, premise)
        assert is_stated(*(read(shipped, text, tree=False) for text in pair.split(" > ")))
