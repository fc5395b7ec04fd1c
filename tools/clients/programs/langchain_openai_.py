"""langchain-openai with its defaults, which send token ids of tiktoken's."""

from typing import Any

from langchain_openai import OpenAIEmbeddings

from tools.clients.programs.common import DOCUMENT, KEY, MANY, MODEL, floats, run


def check(url: str) -> dict[str, Any]:
    client = OpenAIEmbeddings(model=MODEL, base_url=f"{url}/v1", api_key=KEY)
    texts = OpenAIEmbeddings(
        model=MODEL, base_url=f"{url}/v1", api_key=KEY, check_embedding_ctx_length=False
    )
    return {
        "document": floats(client.embed_query(DOCUMENT)),
        "1,000 texts": len(client.embed_documents(MANY)),
        "1,000 texts, check_embedding_ctx_length=False": len(texts.embed_documents(MANY)),
    }


if __name__ == "__main__":
    run(check)
