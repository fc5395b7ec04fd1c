"""Train the shipped dependency parser with spaCy, on a treebank and on trees from a larger parser."""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import spacy
from rich.console import Console
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vectors import Vectors

from heedful.files.atomic import replace_folder, write_file
from heedful.text.errors import ParserError
from heedful.training import minilm, soft_trees, tree_teacher, treebank
from heedful.training.data_folder import find, records
from heedful.training.vectors import pca

CONFIG = Path(__file__).with_name("parser.cfg")
ATTRIBUTES = ("ORTH", "SPACY", "HEAD", "DEP", "SENT_START")
TEXTS = {
    "snli/train_subset.jsonl": 14_000,
    "mnli/train_subset.jsonl": 6_000,
    "nli_newprotocols/train.jsonl": 4_000,
    "sst5/train.jsonl": 8_544,
    "trec/train.jsonl": 2_000,
    "stsb/train.jsonl": 2_000,
}
"""Numbers of texts, drawn at random, that the teacher parses: text such as the encoders will read."""
VECTOR_WORDS, VECTOR_WIDTH = 20_000, 64


def train_parser(
    data: Path, out: Path, *, seed: int, cache: Path, console: Console
) -> dict[str, float]:
    """Train, score on the gold sentences of EWT test, and write the pipeline to `out`, whole.

    The teacher and its trees are cached in `cache`, so that an interrupted run can continue.
    Returns UAS and LAS, 0..1 (spaCy's scorer: punctuation left out). Raises DataMissing; ParserError where
    `out` holds something that is not a pipeline.
    """
    check_out(out)
    blank = spacy.blank("en")
    gold = {split: treebank.sentences(data, split) for split in ("train", "dev", "test")}
    silver_docs = silver(blank, gold["train"], data, seed, cache, console)
    console.print(
        f"{len(gold['train'])} gold sentences, {len(silver_docs)} texts with the teacher's trees"
    )

    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        folder = Path(scratch)
        # Gold twice: it is correct, and only a fifth of the words.
        mixed = [
            *treebank.grouped(gold["train"], seed),
            *treebank.grouped(gold["train"], seed + 1),
            *silver_docs,
        ]
        random.Random(seed).shuffle(mixed)
        _write(mixed, folder / "train.spacy")
        _write(gold["dev"], folder / "dev.spacy")
        _word_vectors(Counter(token.lower_ for doc in mixed for token in doc)).to_disk(
            folder / "vectors"
        )
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        spacy_train(
            CONFIG,
            folder / "trained",
            overrides={
                "paths.train": str(folder / "train.spacy"),
                "paths.dev": str(folder / "dev.spacy"),
                "paths.vectors": str(folder / "vectors"),
                "system.seed": seed,
            },
        )
        nlp = spacy.load(folder / "trained" / "model-best")
        scores = evaluate(nlp, gold["test"])
        nlp.meta.update(meta("ewt", "tokenizer, tok2vec and parser", scores, seed))
        nlp.config["paths"] = dict.fromkeys(nlp.config["paths"])  # paths of this machine
        write_pipeline(nlp, out)
    return scores


def check_out(out: Path) -> None:
    """Raise ParserError where `out` exists and is not a pipeline."""
    if out.exists() and not (out / "meta.json").is_file():
        raise ParserError(
            f"{out} exists and is no spaCy pipeline: name another folder or remove it"
        )


def write_pipeline(nlp: Language, out: Path) -> None:
    """Write `out` whole, and replace a pipeline that is there."""
    with replace_folder(out) as folder:
        nlp.to_disk(folder)


def evaluate(nlp: Language, gold: Sequence[Doc]) -> dict[str, float]:
    """UAS and LAS of `nlp` on the raw text of gold sentences, its tokens aligned with the treebank's."""
    examples = [
        Example(predicted, reference)
        for predicted, reference in zip(nlp.pipe(doc.text for doc in gold), gold, strict=True)
    ]
    scores = Scorer.score_deps(
        examples,
        "dep",
        getter=lambda token, attribute: getattr(token, f"{attribute}_"),
        head_attr="head",
        labels=nlp.pipe_labels["parser"],
        ignore_labels=("p", "punct"),
    )
    return {"uas": scores["dep_uas"], "las": scores["dep_las"]}


def silver(
    nlp: Language, gold: Sequence[Doc], data: Path, seed: int, cache: Path, console: Console
) -> list[Doc]:
    """Plain texts with the teacher's trees, from `cache` if an earlier run wrote them."""
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"silver-{seed}.spacy"
    if not file.exists():
        teacher_file = file.with_name(f"teacher-{seed}.pt")
        sentences = [
            one for one in tree_teacher.aligned(nlp, gold) if len(one) <= tree_teacher.LONGEST
        ]
        epochs = [sentences] * tree_teacher.EPOCHS
        teacher = tree_teacher.load_or_train(epochs, teacher_file, seed=seed)
        _write(soft_trees.annotate(teacher, nlp, silver_texts(data, seed)), file)
    console.print(f"the teacher's trees: {file}")
    return list(DocBin().from_disk(file).get_docs(nlp.vocab))


def silver_texts(data: Path, seed: int) -> list[str]:
    """The texts of `TEXTS`."""
    rng = random.Random(seed)
    drawn: list[str] = []
    for name, count in TEXTS.items():
        found = {
            record[field].strip(): None
            for record in records(find(data, (name,), dataset=name.partition("/")[0]))
            for field in ("text", "premise", "hypothesis", "a", "b")
            if field in record
        }
        texts = [text for text in found if 0 < len(text) < 300]
        drawn += rng.sample(texts, min(count, len(texts)))
    return drawn


def _word_vectors(counts: Counter[str]) -> Language:
    """A pipeline with nothing but static vectors of the most frequent words, from all-MiniLM-L6-v2."""
    nlp = spacy.blank("en")
    words = [word for word, _ in counts.most_common(VECTOR_WORDS) if not word.isspace()]
    vectors = minilm.mean_vectors(minilm.load(), words)
    vectors = pca(vectors, VECTOR_WIDTH)
    vectors /= vectors.std()
    for word in words:
        nlp.vocab.strings.add(word)
    nlp.vocab.vectors = Vectors(
        data=np.ascontiguousarray(vectors, np.float32),
        keys=words,
        strings=nlp.vocab.strings,
        attr="LOWER",
        name="minilm",
    )
    return nlp


def _write(docs: Iterable[Doc], file: Path) -> None:
    write_file(file, DocBin(attrs=ATTRIBUTES, docs=docs).to_disk)


def meta(
    name: str, parts: str, scores: dict[str, float], seed: int, texts: Iterable[str] = TEXTS
) -> dict[str, object]:
    """The meta.json of a pipeline of `parts`: its sources, of them `texts` the plain ones, and its scores."""
    return {
        "name": f"heedful_{name}",
        "version": "1.0.0",
        "description": f"Dependency parser of Heedful: {parts} for English, UD relations",
        "author": "Heedful",
        "license": treebank.EWT_LICENCE,
        "sources": [
            {"name": "UD English EWT", "license": treebank.EWT_LICENCE},
            {"name": "all-MiniLM-L6-v2 (teacher, word vectors)", "license": "Apache-2.0"},
            *({"name": f"texts of {name}, trees by the teacher"} for name in texts),
        ],
        "performance": {
            "dep_uas": scores["uas"],
            "dep_las": scores["las"],
            "on": "EWT test, gold sentences, raw text, punctuation left out",
            "seed": seed,
        },
    }
