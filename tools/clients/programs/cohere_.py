"""cohere's two clients: rerank."""

from typing import Any

import cohere

from tools.clients.programs.common import DOCUMENT, KEY, MODEL, SENTENCES, run


def check(url: str) -> dict[str, Any]:
    documents = [*SENTENCES, DOCUMENT]
    query = "A dog barked at a bus."
    first = cohere.Client(KEY, base_url=url).rerank(
        query=query, documents=documents, model=MODEL, return_documents=True
    )
    second = cohere.ClientV2(KEY, base_url=url).rerank(
        query=query, documents=documents, model=MODEL, top_n=2
    )
    return {
        "Client.rerank": first.results[0].index,
        "ClientV2.rerank, top_n": [len(second.results), second.results[0].index],
    }


if __name__ == "__main__":
    run(check)
