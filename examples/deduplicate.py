"""Near duplicates of a list of texts: similar, and neither contradicts the other."""

import numpy as np

import heedful

SIMILAR, OPPOSITE = 0.85, 0.5
TEXTS = [
    "The door is open.",
    "The door stands open.",
    "The door is closed.",
    "A man plays the guitar.",
]

embedding, nli = heedful.load("ms-san-embed"), heedful.load("ms-san-nli")
vectors = embedding.encode(TEXTS)
cosines = np.triu(embedding.similarity(vectors, vectors), 1)
pairs = [(TEXTS[i], TEXTS[j]) for i, j in np.argwhere(cosines >= SIMILAR)]
for (first, second), scores in zip(pairs, nli.nli(pairs), strict=True):
    verdict = "kept" if scores["contradiction"] >= OPPOSITE else "duplicate"
    print(f"{verdict}: {first} | {second}")
