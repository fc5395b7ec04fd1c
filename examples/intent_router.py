"""Route a message to a team, by labels that no model was trained on."""

import heedful

TEAMS = ["billing", "delivery", "returns"]
MESSAGES = [
    "Where is my parcel? It should have come on Monday.",
    "I was charged twice on my last invoice.",
    "What is the capital of France?",
]

for message, found in zip(MESSAGES, heedful.classify(MESSAGES, TEAMS), strict=True):
    team = "a person" if found.none > 0.5 else found.label
    print(f"{message} -> {team}")
