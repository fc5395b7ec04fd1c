"""The shipped pipeline in spaCy's hands: it is what the service serves."""

import pickle
import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Token

import heedful.text.arc_parser  # noqa: F401  # registers it; an install has entry points for that
from heedful.text.parse import fingerprint
from tests.shipped import BUNDLES

TEXTS = 2000
KINDS = (
    "Two kids at a ballgame wash their hands . The dog isn't good , is it ?",
    "can't won’t isn`t didnt DONT did'nt y'all I'd've o'clock 'tis wanna gonna they´re \"quoted\" “curly” ‘single’",
    "https://example.org/a?b=c&d=e#f www.test.co.uk me@mail.example @someone #tag 10km $5.00 1,000.50 24-11-29 7PM",
    "<b>bold</b> <br/> <!-- a comment --> &amp; &lt;i&gt; &#39; &hellip; &nosuch; <script> a<b <a href='x'>link</a>",
    "😀 👨‍👩‍👧 👍🏽 :-) ♥ ✓ … — – ‑ ﬁne ｆｕｌｌ ｗｉｄｔｈ 🇩🇪",
    "naïve Ärger İstanbul привет мир Ελλάδα مرحبا بالعالم 你好，世界。 こんにちは नमस्ते שלום e\u0301 한국어",
    "a\u200bb \u200b \ufeff\u00ad soft\u00adhyphen \u202etrojan\u202c zero\u200cwidth \u2028 \x1c \x85 \u3000",
    "sooooo !!!!! ?!?! ...... ---- ____ ((( ]]] ''' \"\"\" `` %%% \\ / | ~~~ ^ {x} [y] $$ <<>> null None NaN -1e309",
    f"{'x' * 30} {'ab' * 120} {'!' * 200} {'-' * 80}a {'a.' * 60}",
)
BLANKS = (" ", " ", " ", " ", "  ", "\n", "\t", " \n\n ", "\u3000", "", "\r\n")
Row = tuple[str, int, int, int, str]


def hostile_texts() -> list[str]:
    """Texts that /tokenize takes: of one kind, or mixed."""
    rng = random.Random(0)
    pieces = [kind.split(" ") for kind in KINDS]
    texts: list[str] = []
    while len(texts) < TEXTS:
        of = rng.choice(pieces) if rng.random() < 0.7 else [p for kind in pieces for p in kind]
        parts = [rng.choice(of) + rng.choice(BLANKS) for _ in range(rng.randint(1, 18))]
        texts.append(rng.choice(("", "", " ", "\n")) + "".join(parts))
    return texts


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.load(BUNDLES / "parser")


def words(doc: Doc) -> list[Token]:
    """The document's tokens but for those that spaCy counts as white space."""
    return [token for token in doc if token.pos_ != "SPACE"]


def rows(doc: Doc) -> list[Row]:
    """Each word's text, offsets, the number of its head among the words, and its relation."""
    of = words(doc)
    number = {token.i: i for i, token in enumerate(of)}
    return [(t.text, t.idx, t.idx + len(t), number[t.head.i], t.dep_) for t in of]


def served(tokens: list[dict[str, Any]]) -> list[Row]:
    return [(t["text"], t["start"], t["stop"], t["head"], t["dep"]) for t in tokens]


def test_the_pipeline_gives_what_the_service_answers(nlp: Language, shipped: str) -> None:
    docs = [doc for doc in nlp.pipe(hostile_texts()) if words(doc)]
    assert len(docs) > 0.95 * TEXTS
    assert [doc.text for doc in docs] == [text for text in hostile_texts() if words(nlp(text))]
    with httpx.Client(base_url=shipped, timeout=120) as client:
        for begin in range(0, len(docs), 500):
            some = docs[begin : begin + 500]
            body = {"inputs": [doc.text for doc in some], "truncate": True}
            answer = client.post("/tokenize", json=body).json()
            assert [served(tokens) for tokens in answer] == list(map(rows, some))
        for doc in docs[::25]:
            body = {"inputs": doc.text, "model": "ms-san-sst2", "truncate": True}
            (sentence,) = client.post("/explain", json=body).json()["sentences"]
            assert served(sentence["tokens"]) == rows(doc)


def test_what_is_no_word_keeps_its_characters(nlp: Language) -> None:
    doc = nlp(" It  isn’t <b>good</b>\u200b &amp; cheap")
    blanks = [token for token in doc if token.pos_ == "SPACE"]
    assert [token.text for token in blanks] == [" ", " ", "<b>", "</b>\u200b "]
    assert [token.text for token in words(doc)] == ["It", "is", "n’t", "good", "&amp;", "cheap"]
    assert [token.norm_ for token in words(doc)][2:4] == ["not", "good"]
    assert all(token.dep_ == "dep" and token.head.pos_ != "SPACE" for token in blanks)
    assert [len(nlp(text)) for text in ("", "  \n", "<br>")] == [0, 1, 1]


def test_a_copy_of_the_pipeline_reads_alike(nlp: Language, tmp_path: Path) -> None:
    texts = hostile_texts()[:60]
    nlp.to_disk(tmp_path / "copy")
    component = BUNDLES / "parser" / "parser"
    assert fingerprint(tmp_path / "copy" / "parser") == fingerprint(component)
    copies = (
        spacy.load(tmp_path / "copy"),
        spacy.load(BUNDLES / "parser").from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
    )
    expected = [rows(nlp(text)) for text in texts]
    for copy in copies:
        assert [rows(doc) for doc in copy.pipe(texts, batch_size=7)] == expected
        assert copy.pipe_labels["parser"] == nlp.pipe_labels["parser"]
    stored = DocBin(docs=nlp.pipe(texts), store_user_data=True).to_bytes()
    assert [rows(doc) for doc in DocBin().from_bytes(stored).get_docs(nlp.vocab)] == expected


def test_the_components_of_others_join_it() -> None:
    nlp = spacy.load(BUNDLES / "parser", exclude=["parser"])
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "GAME", "pattern": "ballgame"}])  # type: ignore[attr-defined]
    doc = nlp("A ballgame.  “Rain” <b>ended</b> it.")
    assert [ent.label_ for ent in doc.ents] == ["GAME"]
    assert len(list(doc.sents)) == 2
    with nlp.memory_zone():
        assert nlp("Words that nobody has heard: brillig, slithy.").text.endswith("slithy.")
