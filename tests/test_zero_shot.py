"""Labels of one's own on the shipped bundles, over HTTP and in the library."""

from typing import Any

import httpx
import pytest
from huggingface_hub import InferenceClient

import heedful

TOPICS = {
    "The team scored twice in the final minute.": "sports",
    "Fry the onions, then add the rice.": "cooking",
    "The senate votes on the new budget tomorrow.": "politics",
    "My laptop no longer starts after the update.": "computers",
}
LABELS = list(TOPICS.values())


def ask(url: str, **body: Any) -> Any:
    answer = httpx.post(f"{url}/classify", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_plain_texts_get_their_topics(shipped: str) -> None:
    rows = ask(shipped, inputs=list(TOPICS), labels=LABELS)
    assert [row["labels"][0]["label"] for row in rows] == LABELS
    text, *_ = TOPICS
    others = ask(shipped, inputs=text, labels=["gardening", "insurance", "the stock market"])
    assert others["none"] > rows[0]["none"]


def test_the_hubs_client(shipped: str) -> None:
    client = InferenceClient(shipped)
    for text, label in TOPICS.items():
        found = client.zero_shot_classification(text, LABELS)
        assert found[0].label == label
        assert sum(one.score for one in found) == pytest.approx(1)
    more: dict[str, Any] = {"multi_label": True, "hypothesis_template": "It is about {}."}
    several = client.zero_shot_classification(text, LABELS, **more)
    own = ask(shipped, inputs=text, labels=LABELS, **more)["labels"]
    scores = {one["label"]: one["score"] for one in own}
    assert {one.label: one.score for one in several} == pytest.approx(scores)


def test_the_library_answers_as_the_service(shipped: str) -> None:
    texts = list(TOPICS)
    rows = ask(shipped, inputs=texts, labels=LABELS)
    found = heedful.classify(texts, LABELS)
    for one, row in zip(found, rows, strict=True):
        expected = {label["label"]: label["score"] for label in row["labels"]}
        assert list(one.scores) == list(expected)
        assert one.scores == pytest.approx(expected, abs=1e-4)
        assert one.none == pytest.approx(row["none"], abs=1e-4)
        assert one.label == row["labels"][0]["label"]
