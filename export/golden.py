"""Golden vectors of a bundle: what its graphs give for 32 sentences, to be compared wherever it is served."""

from collections.abc import Callable, Sequence

import numpy as np

from heedful.export.head import open_head
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, MEASURED
from heedful.runtime.bundles.golden import ENCODERS, Golden, Outputs, Precision, outputs, sides
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.text.batch import collate
from heedful.text.parse import Parse, ParseJob

SENTENCES = (
    "Two kids at a ballgame wash their hands.",
    "The children are asleep at home.",
    "A man in a red jacket rides a bicycle down a steep hill.",
    "Nobody is in the park today.",
    "The film is not without charm, but it never quite comes alive.",
    "A gorgeous, witty, seductive movie.",
    "Two hours that feel like four.",
    "What is the capital of Australia?",
    "Who wrote the first dictionary of the English language?",
    "How many miles is it from London to Edinburgh?",
    "Yes.",
    "Stop!",
    "Well, I don't know; you'd better ask her yourself.",
    "Shares of the company rose 4.5 % to $18.20 on Monday.",
    "The board agreed to pay a quarterly dividend of 12 cents per share.",
    "Oil prices fell as exporters raised their output for the third month.",
    "She gave the book that he had lent her to a friend of his sister's.",
    "The dog which chased the cat that ate the mouse ran away.",
    "While it was raining, the players waited in the bus and sang.",
    "An old woman feeds pigeons in front of the cathedral.",
    "Somebody performs music for a crowd on a small stage.",
    "A girl is not playing the guitar.",
    "The quick brown fox jumps over the lazy dog.",
    "If the weather holds, we shall set out before dawn and reach the hut by noon.",
    "He neither apologised nor explained why the work had been late again.",
    "THE PRINTER IS OUT OF PAPER",
    "my laptop wont charge since the last update pls help",
    "Zyxomic flurbs grandulate the quintessimal brockle.",
    "Visit https://example.org/a?b=1 or write to someone@example.org.",
    "Das ist kein englischer Satz.",
    "你好,世界 😀",
    "A committee of nine members, chosen by lot from among those who had signed the petition, met "
    "every Thursday for a year in order to decide what should become of the abandoned mill.",
)


def golden(bundle: Bundle, parse: Callable[[Sequence[ParseJob]], Sequence[Parse]]) -> Golden:
    """What the bundle's graphs give now for what its parser reads."""
    card, vocab = bundle.card, bundle.vocab
    jobs = [ParseJob(text, card.max_tokens, card.tree) for text in SENTENCES]
    parses = [parsed.first(vocab.fitting(parsed.tokens)) for parsed in parse(jobs)]
    sentences = collate([vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    head = open_head(bundle)
    found: dict[Precision, Outputs] = {}
    for precision, file in ENCODERS.items():
        if file not in bundle.files:
            continue
        session = OrtSession(bundle.files[file], "cpu", 1, files={ENCODER: bundle.files[ENCODER]})
        vectors = session.run(encoder_feeds(card, sentences))
        logits = head(sides(card, vectors)) if head else None
        found[precision] = outputs(card, vectors, logits)
    return Golden(
        SENTENCES,
        [parse.tokens for parse in parses],
        [np.asarray(parse.heads) for parse in parses],
        found,
        {name: sha for name, sha in card.files.items() if name not in MEASURED},
    )
