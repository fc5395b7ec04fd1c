"""Which words speak for (+) and against (-) the answer of a model."""

import heedful

model = heedful.load("ms-san-sentiment")
explanation = model.explain("The food was cold but the staff was lovely.", evidence=True)
print(explanation.answer["prediction"]["label"])
[weights] = explanation.answer["evidence"]["sentences"]
ranked = sorted(
    zip(explanation.tokens[0], weights["weights"], strict=True), key=lambda pair: pair[1]
)
print("against:", *(token for token, weight in ranked[:2] if weight < 0))
print("for:", *(token for token, weight in reversed(ranked[-2:]) if weight > 0))
explanation.save("evidence.html")  # the page of `heedful explain`
