"""An index with one bit a value: finds the nearest by Hamming distance, and orders them by cosine with int8 vectors."""

import numpy as np

import heedful

TEXTS = [
    "A man plays the guitar on a stage.",
    "Two dogs run through the snow.",
    "A woman slices an onion.",
    "The stock market fell sharply today.",
    "Children are swimming in a lake.",
]

model = heedful.load("ms-san-embed")
bits, bytes_ = (model.encode(TEXTS, precision=kind) for kind in ("ubinary", "int8"))
print(f"{model.encode(TEXTS).nbytes // len(TEXTS)} bytes a text, {bits.shape[1]} in the index")
query = "Someone is playing music"
distances = np.bitwise_count(bits ^ model.encode(query, precision="ubinary")).sum(axis=1)
nearest = np.argsort(distances)[:3]
cosines = model.similarity(model.encode(query), bytes_[nearest])[0]
print(TEXTS[nearest[cosines.argmax()]])
