"""Which words speak for (+) and against (-) the answer of a model."""

import heedful

model = heedful.load("ms-san-sentiment")
found = model.explain("The food was cold but the staff was lovely.", evidence=True)
print(found.answer["prediction"]["label"])
[weights] = found.answer["evidence"]["sentences"]
ranked = sorted(zip(found.tokens[0], weights["weights"], strict=True), key=lambda one: one[1])
print("against:", *(token for token, weight in ranked[:2] if weight < 0))
print("for:", *(token for token, weight in reversed(ranked[-2:]) if weight > 0))
found.save("evidence.html")  # the page of `heedful explain`
