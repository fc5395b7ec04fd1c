"""llama-index-embeddings-openai-like."""

from typing import Any

from llama_index.embeddings.openai_like import OpenAILikeEmbedding

from tools.clients.programs.common import DOCUMENT, KEY, MANY, MODEL, floats, run


def check(url: str) -> dict[str, Any]:
    client = OpenAILikeEmbedding(model_name=MODEL, api_base=f"{url}/v1", api_key=KEY)
    return {
        "document": floats(client.get_text_embedding(DOCUMENT)),
        "1,000 texts": len(client.get_text_embedding_batch(MANY)),
    }


if __name__ == "__main__":
    run(check)
