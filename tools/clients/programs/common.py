"""The texts and the model for every client's program."""

import json
import sys
from collections.abc import Callable
from typing import Any

MODEL = "ms-san-embed"
KEY = "any"
SENTENCES = [
    "The committee met on Tuesday to discuss the new budget for schools.",
    "Rain fell on the hills while two farmers repaired their old fence.",
    "A small dog ran across the street and barked at the passing bus.",
    "Nobody had expected the train to arrive so early in the morning.",
]
DOCUMENT = " ".join(f"{SENTENCES[i % 4]} It was day {i}." for i in range(190))
"""A little more than 3,000 words."""
MANY = [f"Document number {i} is about a dog." for i in range(1000)]


def run(check: Callable[[str], dict[str, Any]]) -> None:
    """Call the program's check with the service's URL and print what it returns."""
    sys.stdout.write(json.dumps(check(sys.argv[1])) + "\n")


def floats(vector: Any) -> list[float]:
    return [float(value) for value in vector]
