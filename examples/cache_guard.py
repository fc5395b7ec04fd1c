"""A semantic cache: an answer is used again for a similar question, unless one contradicts the other.

The guard finds most opposites, not all: it misses "from low to high" and "from high to low".
"""

import numpy as np

import heedful

SIMILAR, OPPOSITE = 0.6, 0.5
embedding, nli = heedful.load("ms-san-embed"), heedful.load("ms-san-nli")
CACHE = {"How do I enable logging?": "Set LOG=1.", "Is the server running?": "Yes, since Monday."}
known = list(CACHE)
vectors = embedding.encode(known)


def cached_answer(question: str) -> str | None:
    cosines = embedding.similarity(embedding.encode(question), vectors)[0]
    best = known[int(np.argmax(cosines))]
    answers = nli.nli([(question, best), (best, question)])
    if max(answer["contradiction"] for answer in answers) >= OPPOSITE:
        return None
    return CACHE[best] if cosines.max() >= SIMILAR else None


for question in ("How can I enable logging?", "How do I disable logging?", "What is for lunch?"):
    print(f"{question} {cached_answer(question) or 'ask the model'}")
