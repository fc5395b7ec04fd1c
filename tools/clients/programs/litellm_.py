"""litellm: embeddings as OpenAI's, rerank as Cohere's, Jina's and Hugging Face's."""

from typing import Any

import litellm

from tools.clients.programs.common import DOCUMENT, KEY, MANY, MODEL, SENTENCES, floats, run


def check(url: str) -> dict[str, Any]:
    base = {"api_base": f"{url}/v1", "api_key": KEY}
    [document] = litellm.embedding(f"openai/{MODEL}", input=[DOCUMENT], **base).data
    many = litellm.embedding(f"openai/{MODEL}", input=MANY, **base).data
    results = {"document": floats(document["embedding"]), "1,000 texts": len(many)}
    for provider in ("cohere", "jina_ai", "huggingface"):
        ranks = litellm.rerank(
            f"{provider}/{MODEL}",
            query="A dog barked at a bus.",
            documents=SENTENCES,
            api_base=url,
            api_key=KEY,
        )
        results[f"rerank, {provider}/"] = ranks.results[0]["index"]
    return results


if __name__ == "__main__":
    run(check)
