"""Broad English text for embeddings, from `data/text`: sentences, passages, keywords and both sides of natural pairs.

The texts have no labels; those of `tools.tasks.held_out` are left out.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from heedful.training.data_folder import PAGE, records
from heedful.training.errors import DataMissing
from heedful.training.tasks.base import UNLABELLED, Example, Source
from tools.tasks import held_out

SENTENCES, PASSAGES, PAIRS, KEYWORDS = 10_000, 5_000, 20_000, 40_000
"""At most so many texts: sentences of a kind, passages of a kind, pairs of a file, and bags of keywords."""
KINDS = {
    "books": "public domain",
    "captions": "CC BY 4.0",
    "commonsense": "CC BY 4.0, CC BY-SA 4.0, Apache-2.0, MIT",
    "dialogue": "CC BY 4.0, CC BY-SA 4.0, Apache-2.0, BSD-3-Clause",
    "dictionary": "CC BY 4.0, CC BY-SA 4.0",
    "encyclopaedic": "CC BY 4.0, CC BY-SA 4.0, GFDL 1.1, MIT, public domain",
    "government": "public domain, CC0, MIT",
    "medical": "CC BY 4.0",
    "news": "CC BY 2.5, CC BY-SA 4.0",
    "questions": "CC BY 4.0, CC BY-SA 4.0, MIT",
    "recipes": "public domain",
    "short_sentences": "CC0, CC BY 2.0 FR",
    "speeches": "public domain",
    "stackexchange": "CC BY-SA 4.0",
    "techdoc": "PSF, PostgreSQL, BSD, MIT, Apache-2.0, CC BY 4.0, CC BY-SA 4.0, GFDL 1.2, public domain",
    "textbooks": "CC BY 4.0",
}
"""The folders to read and their files' licences (`text/README.md`). Debian's descriptions, of mixed licences, are left
out."""
RUNNING = (
    "books",
    "government",
    "medical",
    "news",
    "speeches",
    "stackexchange",
    "techdoc",
    "textbooks",
)
"""Kinds whose files hold the sentences of a document in its order."""
PAIR_LICENCE = "CC BY 2.0-4.0, CC BY-SA 3.0-4.0, CC0, Apache-2.0, BSD, GFDL, MIT, PostgreSQL, PSF, public domain"
NOT_READ = ("debian_short_long", "wiki_split", *held_out.PAIRS)
"""Pairs of mixed licences, near-copies, and the pairs of the suite."""
LONGEST = 120
"""Words of a passage."""


def sources(sentences: float = 1.0, share: float = 1.0) -> tuple[Source, ...]:
    """A source for the sentences and for the passages of each kind, for the pairs and for the keywords.

    `sentences` is the share of the sentences, `share` that of everything else.
    """
    return (
        *(
            _source(
                f"text/{kind}",
                licence,
                "distinct sentences",
                round(sentences * SENTENCES),
                _sentences(kind),
            )
            for kind, licence in KINDS.items()
        ),
        *(
            _source(
                f"text/{kind}",
                KINDS[kind],
                "passages of 3 to 8 sentences",
                round(share * PASSAGES),
                _passages(kind),
            )
            for kind in RUNNING
        ),
        _source(
            "text/pairs",
            PAIR_LICENCE,
            "both sides of natural pairs",
            None,
            _pairs(round(share * PAIRS)),
        ),
        _source(
            "text", PAIR_LICENCE, "2 to 8 keywords of a passage", round(share * KEYWORDS), _keywords
        ),
    )


def _source(
    name: str,
    licence: str,
    note: str,
    limit: int | None,
    texts: Callable[[Path, random.Random], Iterator[str]],
) -> Source:
    def read(data: Path) -> list[Example]:
        judged = held_out.keys(data)
        drawn = dict.fromkeys(texts(data, random.Random(f"{name} {note}")))
        allowed = [text for text in drawn if held_out.key(text) not in judged]
        return [Example((text,), UNLABELLED) for text in allowed[:limit]]

    return Source(name, licence, f"{note}, no labels", read)


def _files(data: Path, kind: str) -> list[list[dict[str, str]]]:
    """The rows of each file of a kind. Raises DataMissing."""
    files = sorted((data / "text" / kind).glob("*.jsonl*"))
    if not files:
        raise DataMissing(f"{data / 'text' / kind} holds no file: {PAGE} describes the layout")
    return [list(records(file)) for file in files if file.name.split(".")[0] not in NOT_READ]


def documents(data: Path, kinds: Sequence[str]) -> list[list[str]]:
    """The texts of each file of some kinds, in its order; of RUNNING they are the sentences of documents.

    Raises DataMissing.
    """
    return [[row["text"] for row in file] for kind in kinds for file in _files(data, kind)]


def _in_turn(files: Sequence[Sequence[str]], rng: random.Random) -> Iterator[str]:
    """A text of each file in turn, drawn without replacement, so that each file gives equally many until it is read."""
    queues = [rng.sample(file, len(file)) for file in files]
    while queues := [queue for queue in queues if queue]:
        for queue in queues:
            yield queue.pop()


def _sentences(kind: str) -> Callable[[Path, random.Random], Iterator[str]]:
    return lambda data, rng: _in_turn(documents(data, [kind]), rng)


def _passages(kind: str) -> Callable[[Path, random.Random], Iterator[str]]:
    return lambda data, rng: _in_turn(
        [list(_windows(file, rng)) for file in documents(data, [kind])], rng
    )


def _windows(sentences: Sequence[str], rng: random.Random) -> Iterator[str]:
    """The text cut into passages of 3 to 8 sentences and at most LONGEST words, one behind the other."""
    start = 0
    while start < len(sentences):
        count = rng.randint(3, 8)
        words = " ".join(sentences[start : start + count]).split()
        yield " ".join(words[:LONGEST])
        start += count


def _pairs(limit: int) -> Callable[[Path, random.Random], Iterator[str]]:
    def texts(data: Path, rng: random.Random) -> Iterator[str]:
        for file in _files(data, "pairs"):
            for row in rng.sample(file, min(limit, len(file))):
                yield from (row["a"], row["b"])

    return texts


def _keywords(data: Path, rng: random.Random) -> Iterator[str]:
    """Content words of a passage, in its order or shuffled, like a search query."""
    for passage in _in_turn([list(_passages(kind)(data, rng)) for kind in RUNNING], rng):
        words = [word.strip(".,;:!?\"'()[]") for word in passage.split()]
        content = list(dict.fromkeys(word for word in words if _is_content(word)))
        if len(content) < 2:
            continue
        places = rng.sample(range(len(content)), rng.randint(2, min(8, len(content))))
        chosen = [content[i] for i in (places if rng.random() < 0.5 else sorted(places))]
        yield " ".join(chosen).lower() if rng.random() < 0.7 else " ".join(chosen)


def _is_content(word: str) -> bool:
    return len(word) > 2 and word.lower() not in ENGLISH_STOP_WORDS
