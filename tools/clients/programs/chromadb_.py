"""chromadb with its OpenAI and its Hugging Face embedding functions: 1,000 documents in one call."""

from typing import Any

import chromadb
from chromadb.utils.embedding_functions import HuggingFaceEmbeddingServer, OpenAIEmbeddingFunction

from tools.clients.programs.common import KEY, MANY, MODEL, run


def check(url: str) -> dict[str, Any]:
    results = {}
    for name, function in (
        ("OpenAIEmbeddingFunction", OpenAIEmbeddingFunction(KEY, MODEL, api_base=f"{url}/v1")),
        ("HuggingFaceEmbeddingServer", HuggingFaceEmbeddingServer(f"{url}/embed")),
    ):
        collection = chromadb.EphemeralClient().create_collection(name, embedding_function=function)
        collection.add([str(i) for i in range(len(MANY))], documents=MANY)
        [nearest] = collection.query(query_texts=[MANY[7]], n_results=1)["ids"]
        results[f"{name}: 1,000 documents added, one found"] = [collection.count(), nearest[0]]
    return results


if __name__ == "__main__":
    run(check)
