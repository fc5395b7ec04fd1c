"""The misspelt texts of benchmarks.robustness: unlisted, the same each time, and all else as it was."""

import pytest

from benchmarks.robustness import misspelt
from heedful.text.parse import Parser
from heedful.training.tasks.base import Example
from tests.builders import build_parser


def test_only_content_words_change_and_never_to_a_listed_word(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("parser") / "parser"
    build_parser(folder)
    text = "The wonderful film, which has 12 beautiful characters, is terrible. " * 20
    examples = [Example((text,), 1.0)]
    listed = {"film", "flm"}
    [changed] = misspelt(examples, listed, Parser.load(folder))
    assert changed == misspelt(examples, listed, Parser.load(folder))[0]
    assert changed.label == 1.0
    words, others = text.split(), changed.texts[0].split()
    assert len(words) == len(others)
    differ = {(a, b) for a, b in zip(words, others, strict=True) if a != b}
    assert len(differ) > 5
    assert {a for a, _ in differ} <= {"wonderful", "film,", "beautiful", "characters,", "terrible."}
    assert not {b.strip(",.") for _, b in differ} & listed
