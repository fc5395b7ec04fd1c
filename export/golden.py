"""Golden vectors of a bundle: the outputs of its graphs for 32 sentences, to compare with wherever it is served."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, HEAD, MEASURED
from heedful.runtime.bundles.golden import ENCODERS, Golden, Outputs, Precision, outputs, sides
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.text.arrays import Floats
from heedful.text.batch import collate
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.parse import Parse

SENTENCES = tuple(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())


def golden(bundle: Bundle, parse: Callable[[Sequence[str], int, bool], Sequence[Parse]]) -> Golden:
    """The outputs of the bundle's graphs for the golden sentences, with their words and trees."""
    card, vocab = bundle.card, bundle.vocab
    uncut = parse(SENTENCES, card.max_tokens, card.tree)
    parses = [parsed.first(vocab.fitting(parsed.tokens)) for parsed in uncut]
    sentences = collate([vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    head = open_head(bundle)
    by_precision: dict[Precision, Outputs] = {}
    for precision, file in ENCODERS.items():
        if file not in bundle.files:
            continue
        session = OrtSession(bundle.files[file], "cpu", 1, files={ENCODER: bundle.files[ENCODER]})
        vectors = session.run(encoder_feeds(card, sentences))
        logits = head(sides(card, vectors)) if head else None
        by_precision[precision] = outputs(card, vectors, logits)
    return Golden(
        SENTENCES,
        [parse.tokens for parse in parses],
        [np.asarray(parse.heads) for parse in parses],
        by_precision,
        {name: sha for name, sha in card.files.items() if name not in MEASURED},
    )


def open_head(bundle: Bundle) -> Callable[[Sequence[Floats]], Floats] | None:
    """The head on one thread of the CPU: vectors (N, D), one array per side -> logits (N, C). None without one."""
    if HEAD not in bundle.files:
        return None
    session = OrtSession(bundle.files[HEAD], "cpu", 1)
    return lambda sides: session.run(dict(zip(HEAD_INPUTS[bundle.card.kind], sides, strict=True)))
