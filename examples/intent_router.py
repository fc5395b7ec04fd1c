"""Route a message to a team, by labels of your own, without training."""

import heedful

TEAMS = ["billing", "delivery", "returns"]
MESSAGES = [
    "Where is my parcel? It should have come on Monday.",
    "I was charged twice on my last invoice.",
    "What is the capital of France?",
]

for message, answer in zip(MESSAGES, heedful.classify(MESSAGES, TEAMS), strict=True):
    team = "no team: ask a person" if answer.none > 0.5 else answer.label
    print(f"{message} -> {team}")
