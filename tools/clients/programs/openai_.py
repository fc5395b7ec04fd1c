"""The openai package with its defaults."""

from typing import Any

import openai

from tools.clients.programs.common import DOCUMENT, KEY, MANY, MODEL, floats, run


def check(url: str) -> dict[str, Any]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY)
    [document] = client.embeddings.create(input=DOCUMENT, model=MODEL).data
    many = client.embeddings.create(input=MANY, model=MODEL).data
    return {
        "document": floats(document.embedding),
        "1,000 texts": len(many),
        "models.list, models.retrieve": client.models.retrieve(MODEL).id,
        "another model's name": len(
            client.embeddings.create(input="dog", model="text-embedding-3-small").data
        ),
    }


if __name__ == "__main__":
    run(check)
