"""huggingface_hub's InferenceClient, which asks a service's own address."""

from typing import Any

from huggingface_hub import InferenceClient

from tools.clients.programs.common import SENTENCES, run


def check(url: str) -> dict[str, Any]:
    client = InferenceClient(url)
    return {
        "feature_extraction": list(client.feature_extraction(SENTENCES[0]).shape),
        "text_classification": len(client.text_classification("A gorgeous, witty movie.")),
        "text_classification, top_k": len(
            client.text_classification("A gorgeous, witty movie.", top_k=1)
        ),
        "zero_shot_classification": client.zero_shot_classification(
            "Fry the onions, then add the rice.", ["sports", "cooking", "politics"]
        )[0].label,
        "sentence_similarity": len(client.sentence_similarity("dog", other_sentences=SENTENCES)),
    }


if __name__ == "__main__":
    run(check)
