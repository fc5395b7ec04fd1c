"""Words in a bundle's graphs: the graphs' logits are numpy's, alone and together with a frozen encoder's."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export import bag
from heedful.export.errors import ParityError
from heedful.export.linear_head import Provenance, write_bundle
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import DataCard
from heedful.runtime.service import Options, running
from heedful.text.vocab import Vocab
from heedful.training.bag import word_keys
from heedful.training.linear import Linear, Recipe, Texts
from tests.asking import classify, embed, explain
from tests.builders import BuiltParser, build_bundle, build_pieces

TEXTS = [
    *("the dog is good", "two kids wash", "zebras wash zebras", "a man at the ballgame"),
    *("not good at all", "bad zebras", "the kids wash their hands", "bad"),
]
TARGETS = np.eye(3, dtype=bool)[[0, 1, 2, 0, 1, 2, 1, 2]]
MADE = Provenance(
    task="mood",
    data=DataCard(name="moods.csv", rows=8, licence="not stated", note="made up"),
    command="none",
    seed=1,
)


def lexicon_of(base: Bundle) -> Bundle:
    """The base, with "zebras" in its words where it has a list of them."""
    if not isinstance(base.vocab, Vocab):
        return base
    return Bundle(
        base.folder, base.card, base.files, Vocab([*base.vocab.words[2:], "zebras", "all"])
    )


@pytest.mark.parametrize("kind", ["words", "int8", "pieces"])
def test_the_service_answers_as_numpy(kind: str, tmp_path: Path, pipeline: BuiltParser) -> None:
    """The base may have a tree, int8 and explain graphs, or pieces; words that it lacks count too."""
    pieces = build_pieces() if kind == "pieces" else None
    build_bundle(
        tmp_path,
        pipeline,
        name="tiny-base",
        kind="embedding",
        tree=kind != "pieces",
        pieces=pieces,
        explain=kind == "int8",
        int8=kind == "int8",
    )
    base = read(tmp_path / "tiny-base")
    options = Options(tmp_path, str(pipeline.folder), threads=1)

    async def run() -> None:
        async with running(options) as service:
            vectors = (await embed(service, TEXTS, model="tiny-base", normalize=True)).value
            lexicon = lexicon_of(base).vocab
            sentences = [lexicon.sentence(t.split(), np.arange(len(t.split()))) for t in TEXTS]
            texts = Texts([word_keys(one, len(lexicon)) for one in sentences], vectors)
            expected = {}
            for name, recipe in {
                "both": Recipe(words=True, vectors=True, strength=10),
                "alone": Recipe(words=True, vectors=False, strength=10),
            }.items():
                linear = replace(Linear.fit(recipe, texts, TARGETS), temperature=2.0)
                attach = bag.with_words if recipe.vectors else bag.words_alone
                made = attach(base, lexicon, linear)
                assert bag.check(made, linear, sentences) < 1e-4
                head = bag.head_of(linear, ("sad", "calm", "glad"))
                write_bundle(made, head, MADE, tmp_path / f"tiny-{name}")
                expected[f"tiny-{name}"] = linear.logits(texts)
            await service.reload()
            assert not service.refused
            for name, logits in expected.items():
                found = await classify(service, TEXTS, model=name, raw=True)
                np.testing.assert_allclose(found.value, logits, atol=1e-3)
                alone = await classify(service, TEXTS[2:3], model=name, raw=True)
                np.testing.assert_allclose(alone.value[0], found.value[2], atol=1e-5)
            if kind == "int8":
                assert service.precisions["tiny-both"] == "int8"
                assert (await explain(service, TEXTS[:1], model="tiny-both")).value

    asyncio.run(run())


def test_a_composed_word_has_its_own_key(tmp_path: Path, pipeline: BuiltParser) -> None:
    """Words that are composed from their spelling are distinguished, in numpy and in the graph."""
    rows = 2**12
    vocab = Vocab(["the", "dog"], composed=rows)
    sentences = [vocab.sentence(text.split(), np.arange(len(text.split()))) for text in TEXTS]
    keys = [word_keys(one, len(vocab)) for one in sentences]
    assert len({key for each in keys for key in each.tolist()}) == len(
        {word for text in TEXTS for word in text.split()}
    )
    build_bundle(tmp_path, pipeline, name="tiny-base", kind="embedding", tree=False)
    base = read(tmp_path / "tiny-base")
    card = base.card.model_copy(update={"composed": rows})
    texts = Texts(keys, np.zeros((len(TEXTS), 8), np.float32))
    linear = Linear.fit(Recipe(words=True, vectors=False, strength=1), texts, TARGETS)
    made = bag.words_alone(Bundle(base.folder, card, base.files, vocab), vocab, linear)
    assert bag.check(made, linear, sentences) < 1e-4
    wrong = Linear.fit(Recipe(words=True, vectors=False, strength=5), texts, TARGETS)
    with pytest.raises(ParityError, match="away from numpy"):
        bag.check(made, wrong, sentences)
