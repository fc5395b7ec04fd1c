"""haystack's OpenAI embedders."""

from typing import Any

from haystack import Document
from haystack.components.embedders import OpenAIDocumentEmbedder
from haystack.utils import Secret

from tools.clients.programs.common import DOCUMENT, KEY, MANY, MODEL, floats, run


def check(url: str) -> dict[str, Any]:
    client = OpenAIDocumentEmbedder(
        Secret.from_token(KEY), MODEL, api_base_url=f"{url}/v1", progress_bar=False
    )
    [document] = client.run(documents=[Document(content=DOCUMENT)])["documents"]
    many = client.run(documents=[Document(content=text) for text in MANY])["documents"]
    return {
        "document": floats(document.embedding),
        "1,000 texts": sum(one.embedding is not None for one in many),
    }


if __name__ == "__main__":
    run(check)
