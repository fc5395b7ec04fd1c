"""Near duplicates of a list of texts: similar, with the same numbers, and neither contradicts the other."""

import re

import numpy as np

import heedful

SIMILAR, OPPOSITE = 0.85, 0.5
TEXTS = [
    "The door is open.",
    "The door stands open.",
    "The door is closed.",
    "Call me at 3 pm.",
    "Call me at 4 pm.",
]

embedding, nli = heedful.load("ms-san-embed"), heedful.load("ms-san-nli")
vectors = embedding.encode(TEXTS)
cosines = np.triu(embedding.similarity(vectors, vectors), 1)
pairs = [(TEXTS[i], TEXTS[j]) for i, j in np.argwhere(cosines >= SIMILAR)]
for (first, second), scores in zip(pairs, nli.nli(pairs), strict=True):
    other_numbers = re.findall(r"\d+", first) != re.findall(r"\d+", second)
    is_kept = other_numbers or scores["contradiction"] >= OPPOSITE
    verdict = "kept" if is_kept else "duplicate"
    print(f"{verdict}: {first} | {second}")
