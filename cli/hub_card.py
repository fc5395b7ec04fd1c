"""A bundle's card as the hub's model card: YAML for the hub's search, then what a reader needs."""

from huggingface_hub import EvalResult, ModelCardData

from heedful.runtime.bundles.card import Card
from heedful.text.kinds import Kind

TASKS: dict[Kind, str] = {
    "embedding": "sentence-similarity",
    "classification": "text-classification",
    "nli": "text-classification",
    "relatedness": "sentence-similarity",
}
"""The hub's name of the task of each kind."""
LICENCES = frozenset({"apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0"})
"""Licences that the hub knows by these names."""


def model_card(card: Card, repository: str) -> str:
    """The content of README.md."""
    licence = card.licence.lower().replace(" ", "-")
    known = licence in LICENCES
    data = ModelCardData(
        language="en",
        library_name="heedful",
        pipeline_tag=TASKS[card.kind],
        tags=["heedful", "onnx", card.encoder.name],
        model_name=card.name,
        eval_results=[
            EvalResult(
                task_type=TASKS[card.kind],
                dataset_type=score.dataset,
                dataset_name=score.dataset,
                dataset_split=score.split,
                metric_type=score.metric,
                metric_value=score.value,
            )
            for score in card.scores
        ],
        license=licence if known else "other",
        license_name=None if known else licence or "not-stated",
    )
    return f"---\n{data.to_yaml()}\n---\n{_text(card, repository)}"


def _text(card: Card, repository: str) -> str:
    use = {
        "embedding": "model.encode(['Two kids wash their hands.'])",
        "classification": "model.predict(['Two kids wash their hands.'])",
        "nli": "model.nli([('Two kids wash their hands.', 'Kids are washing.')])",
        "relatedness": "model.relatedness([('Two kids wash their hands.', 'Kids are washing.')])",
    }[card.kind]
    scores = [
        f"| {score.dataset} {score.split} | {score.metric} | {score.value:.4f} | {score.rows} |"
        for score in card.scores
    ]
    data = [
        f"| {data.name} | {data.rows} | {data.licence} | {data.note} |"
        for data in card.training.data
    ]
    return "\n".join(
        [
            f"\n# {card.name}\n",
            f"{card.encoder.name} ({card.encoder.paper}), {card.encoder.parameters:,} parameters without the "
            f"word table; version {card.version}. It reads English, up to {card.max_tokens} tokens.",
            *([f"Its labels are {', '.join(card.labels)}."] if card.labels else []),
            "\n```python\nimport heedful\n",
            f'model = heedful.load("hf://{repository}")\n{use}\n```\n',
            "| data | metric | score | rows |\n|---|---|---|---|",
            *scores,
            "\nTrained on:\n\n| data | rows | licence | |\n|---|---|---|---|",
            *data,
            f"\nLicence of the model: {card.licence}\n",
        ]
    )
