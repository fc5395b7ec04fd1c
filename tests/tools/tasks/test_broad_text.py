"""The texts that an embedding learns from: balanced, and none that it is judged on."""

import random
from pathlib import Path

import pytest

from heedful.training.errors import DataMissing
from tests.tools.suites.test_search import write
from tools.tasks import broad_text, held_out


@pytest.fixture
def data(tmp_path: Path) -> Path:
    texts = [{"text": f"Sentence {i} of a document about whales and harbours."} for i in range(40)]
    for kind in broad_text.KINDS:
        write(tmp_path / "text" / kind, {"many": texts, "few": [{"text": f"{kind} is Short."}]})
    pairs = [{"a": "what is a whale", "b": "A whale is a large animal of the sea."}]
    judged = [{"a": "is it judged", "b": "A judged passage. books is short."}]
    write(
        tmp_path / "text/pairs",
        {"natural": pairs, "wiki_split": judged, **dict.fromkeys(held_out.PAIRS, judged)},
    )
    write(tmp_path / "stsb", {"dev": [{"a": "Captions is short", "b": "It rains.", "score": 1.0}]})
    rows = [{"query": "who", "positive": ["News is short!"], "negative": []}]
    write(tmp_path / "mteb_dev/wikiqa", {"dev": rows})
    held_out.keys.cache_clear()
    return tmp_path


def test_no_judged_text_is_read_however_it_is_written(data: Path) -> None:
    read = {source.name: source.read(data) for source in broad_text.sources()[:4]}
    for kind in ("books", "captions"):
        assert f"{kind} is Short." not in {one.texts[0] for one in read[f"text/{kind}"]}
    assert "commonsense is Short." in {one.texts[0] for one in read["text/commonsense"]}
    assert held_out.key("News is short.") in held_out.keys(data)


def test_pairs_give_both_sides_and_those_that_are_judged_none(data: Path) -> None:
    (pairs,) = (one for one in broad_text.sources() if one.name == "text/pairs")
    found = {one.texts[0] for one in pairs.read(data)}
    assert found == {"what is a whale", "A whale is a large animal of the sea."}


def test_each_file_of_a_kind_is_read_in_turn(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broad_text, "SENTENCES", 2)
    (dialogue,) = (one for one in broad_text.sources() if one.name == "text/dialogue")
    assert "dialogue is Short." in {one.texts[0] for one in dialogue.read(data)}


def test_passages_hold_sentences_in_order_and_keywords_their_words(data: Path) -> None:
    rng = random.Random(1)
    sentences = [f"S{i} has five words here." for i in range(50)]
    passages = list(broad_text._windows(sentences, rng))
    assert " ".join(passages) == " ".join(sentences)
    assert max(len(one.split()) for one in passages) <= 40
    (keywords,) = (one for one in broad_text.sources() if one.name == "text")
    found = keywords.read(data)
    assert found
    for one in found:
        words = one.texts[0].lower().split()
        assert 2 <= len(words) <= 8
        assert not {"of", "and", "is"} & set(words)


def test_a_missing_folder_is_named(data: Path) -> None:
    (file,) = (data / "text/recipes").glob("many*")
    file.unlink()
    (file,) = (data / "text/recipes").glob("few*")
    file.unlink()
    (recipes,) = (one for one in broad_text.sources() if one.name == "text/recipes")
    with pytest.raises(DataMissing, match="recipes holds no file"):
        recipes.read(data)
