"""A semantic cache (examples/cache_guard.py) on 60 pairs of questions: which are the same, which the opposite.

A question takes the answer of another where their cosine is large enough and neither contradicts the other. The pairs
were written for this measurement, before any of them was tried. The table goes to docs/notes/nli.md.

    python -m benchmarks.cache_guard
"""

import numpy as np
import typer

from benchmarks.options import BUNDLES, Models
from heedful import load

SAME = (
    ("How do I reset my password?", "I forgot my password, how can I set a new one?"),
    ("Where can I see my invoices?", "In which menu do I find my bills?"),
    ("How can I cancel my subscription?", "What do I do to end my subscription?"),
    ("Do you ship to Canada?", "Can my order be sent to Canada?"),
    ("How long does delivery take?", "When will my parcel arrive?"),
    ("Is there a student discount?", "Do students pay less?"),
    ("How do I enable dark mode?", "How can I turn dark mode on?"),
    ("How do I export my data?", "Can I download all of my data?"),
    ("Which browsers do you support?", "In what browsers does it work?"),
    ("Can I pay with PayPal?", "Is PayPal accepted?"),
    ("How do I delete my account?", "I want my account removed, how?"),
    ("What are your opening hours?", "When are you open?"),
    ("How do I change my email address?", "Can I use another email address for my account?"),
    ("Why was my card declined?", "My card was rejected, why?"),
    ("How do I add a user to my team?", "How can I invite a colleague to the team?"),
    ("Is the server up?", "Is the server running?"),
    ("How do I install the app on Windows?", "What are the steps to set the app up on Windows?"),
    ("Does the warranty cover water damage?", "Is water damage covered by the warranty?"),
    ("How do I update the firmware?", "How can I get the newest firmware?"),
    ("What is the maximum file size?", "How large may a file be?"),
    ("How do I increase the font size?", "How can I make the text larger?"),
    ("Can I bring my dog?", "Are dogs allowed?"),
    ("Where is the nearest parking?", "Where can I park close by?"),
    ("How do I start the backup?", "How can I launch a backup?"),
    ("Is breakfast included?", "Does the price include breakfast?"),
    ("How do I log in?", "How can I sign in?"),
    ("Who do I contact for support?", "Whom can I ask for help?"),
    ("What does the premium plan cost?", "How much is the premium plan?"),
    ("How do I sort the table by date?", "Can I order the rows of the table by date?"),
    ("Is my data encrypted?", "Do you encrypt my data?"),
)
OPPOSITE = (
    ("How do I enable notifications?", "How do I disable notifications?"),
    ("How do I turn on the heating?", "How do I turn off the heating?"),
    ("How do I open a port?", "How do I close a port?"),
    ("How do I add a user?", "How do I remove a user?"),
    ("Why is the app so fast?", "Why is the app so slow?"),
    ("How do I lock my screen?", "How do I unlock my screen?"),
    ("How do I increase the volume?", "How do I decrease the volume?"),
    ("Which plans include support?", "Which plans exclude support?"),
    ("When does the shop open?", "When does the shop close?"),
    ("How do I start the service?", "How do I stop the service?"),
    ("How do I subscribe to the newsletter?", "How do I unsubscribe from the newsletter?"),
    ("Can I import contacts?", "Can I export contacts?"),
    ("How do I send money?", "How do I receive money?"),
    ("How do I show hidden files?", "How do I hide files?"),
    ("What is the cheapest room?", "What is the most expensive room?"),
    ("Is smoking allowed?", "Is smoking forbidden?"),
    ("How do I connect to the VPN?", "How do I disconnect from the VPN?"),
    ("How do I upload a file?", "How do I download a file?"),
    ("What are the advantages of plan B?", "What are the disadvantages of plan B?"),
    ("How do I make the page public?", "How do I make the page private?"),
    ("Does it work online?", "Does it work offline?"),
    ("What is the minimum order?", "What is the maximum order?"),
    ("How do I accept the invitation?", "How do I decline the invitation?"),
    ("Does the ticket include the museum?", "Does the ticket exclude the museum?"),
    ("How do I buy shares?", "How do I sell shares?"),
    ("Can I check in before noon?", "Can I check in after noon?"),
    ("How do I sort from low to high?", "How do I sort from high to low?"),
    ("Who won the match?", "Who lost the match?"),
    ("How do I encrypt a disk?", "How do I decrypt a disk?"),
    ("Is the door open?", "Is the door closed?"),
)
THRESHOLDS = (0.6, 0.7, 0.8)
CONTRADICTION = 0.5


def main(models: Models = BUNDLES) -> None:
    """Print, for each threshold of the cosine, the share of pairs that share an answer, without and with the guard."""
    with load("ms-san-embed", models=models) as embedding, load("ms-san-nli", models=models) as nli:
        typer.echo(
            "| cosine at least | same: cosine | same: guarded | opposite: cosine | opposite: guarded |"
        )
        typer.echo("|---|---|---|---|---|")
        cosines, contradicted = [], []
        for pairs in (SAME, OPPOSITE):
            first, second = (embedding.encode(list(side)) for side in zip(*pairs, strict=True))
            cosines.append((first * second).sum(axis=1))
            answers = nli.nli([pair for a, b in pairs for pair in ((a, b), (b, a))])
            scores = np.array([answer["contradiction"] for answer in answers]).reshape(-1, 2)
            contradicted.append(scores.max(axis=1) >= CONTRADICTION)
        for least in THRESHOLDS:
            cells = [
                f"{shared.mean():.2f}"
                for cosine, refused in zip(cosines, contradicted, strict=True)
                for shared in (cosine >= least, (cosine >= least) & ~refused)
            ]
            typer.echo(f"| {least} | {' | '.join(cells)} |")


if __name__ == "__main__":
    typer.run(main)
