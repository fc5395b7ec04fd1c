"""The tables of docs/notes/attention.md, from the cards of bundles."""

from collections.abc import Sequence
from pathlib import Path

from heedful.cli.errors import CommandError
from heedful.files.atomic import write_file
from heedful.runtime.bundles.card import Card, TrustCard

BEGIN, END = (
    "<!-- python -m tools trust --page: begin -->",
    "<!-- python -m tools trust --page: end -->",
)


def write_page(page: Path, cards: Sequence[Card]) -> None:
    """Replace the text between the marks. Raises CommandError where they are missing."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise CommandError(f"{page} does not hold the lines {BEGIN} and {END}")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    new_text = f"{before}{BEGIN}\n\n{tables(cards)}\n{END}{after}"
    write_file(page, lambda part: part.write_text(new_text, encoding="utf-8"))


def tables(cards: Sequence[Card]) -> str:
    """Controls, curves, integrated gradients, and a sentence for each model."""
    controls = ["| model | control | dev | metric | score | change |", "|---|---|---|---|---|---|"]
    curves = [
        "| model | attention | evidence | random | attention wins | rank correlation | sentences |",
        "|---|---|---|---|---|---|---|",
    ]
    gradients = [
        "| model | error, median | 95th percentile | below 5 % | spread, 95th percentile | intervals "
        "| rank correlation | sentences |",
        "|---|---|---|---|---|---|---|---|",
    ]
    verdicts = []
    for card in cards:
        trust = card.trust
        if trust is None:
            verdicts.append(f"- `{card.name}`: not measured.")
            continue
        rows = [
            ("as trained", trust.value),
            *((control.name, control.value) for control in trust.controls),
        ]
        controls += [
            f"| `{card.name}` | {name} | {trust.dataset}, {trust.rows:,} rows | {trust.metric} "
            f"| {value:.3f} | {f'{value - trust.value:+.3f}' if name != 'as trained' else ''} |"
            for name, value in rows
        ]
        correlation = "" if trust.correlation is None else f"{trust.correlation:.2f}"
        curves.append(
            f"| `{card.name}` | {trust.attention:.2f} | {trust.evidence:.2f} | {trust.random:.2f} "
            f"| {trust.wins:.0%} | {correlation} | {trust.sentences} |"
        )
        if (scores := trust.gradients) is not None:
            rank = "" if scores.correlation is None else f"{scores.correlation:.2f}"
            gradients.append(
                f"| `{card.name}` | {scores.median:.1%} | {scores.p95:.1%} | {scores.complete:.0%} "
                f"| {scores.spread:.1%} | {scores.intervals:.0f} | {rank} | {scores.sentences} |"
            )
        verdicts.append(f"- `{card.name}`: {verdict(trust)}")
    tables = [verdicts, controls, curves, *([gradients] if len(gradients) > 2 else [])]
    return "\n".join(line for table in tables for line in (*table, ""))


def verdict(trust: TrustCard) -> str:
    """How far this model's attention explains its answers, in one sentence."""
    margin = 2 * (trust.wins * (1 - trust.wins) / trust.sentences) ** 0.5
    if trust.wins - margin > 0.5:
        beats = "attention beats random orders"
    elif trust.wins + margin < 0.5:
        beats = "attention is worse than random orders"
    else:
        beats = "attention cannot be told from random orders"
    uniform = next(
        (each.value for each in trust.controls if each.name == "uniform attention"), trust.value
    )
    return (
        f"{beats} ({trust.wins:.0%} of {trust.sentences} sentences); "
        f"with uniform attention its {trust.metric} is {uniform:.3f} instead of {trust.value:.3f}."
    )
