"""Token ids in place of texts, which OpenAI's clients send that cut long texts themselves."""

import asyncio
import functools
import logging
import os
from collections.abc import Sequence

from heedful.runtime.errors import BadInput

try:
    import tiktoken
except ImportError:
    tiktoken = None  # type: ignore[assignment]  # a plain install has no tiktoken

log = logging.getLogger("heedful.server")

ENCODING = "cl100k_base"
"""The encoding of OpenAI's embedding models; langchain-openai uses it for each unknown name."""
REMEDY = (
    "send the text (langchain-openai: check_embedding_ctx_length=False), or install tiktoken next to the "
    "service with TIKTOKEN_CACHE_DIR naming a folder that holds its file of cl100k_base"
)


async def decode(ids: Sequence[Sequence[int]], path: str) -> list[str]:
    """The texts of lists of token ids. Raises BadInput for an unknown id, and where the encoding is not installed."""
    encoding = await asyncio.to_thread(_encoding)
    if encoding is None:
        raise BadInput(
            f"{path} holds token ids, which this service cannot decode: {REMEDY}",
            param=path,
            code="unsupported",
        )
    texts = []
    for row, tokens in enumerate(ids):
        try:
            texts.append(encoding.decode(list(tokens)))
        except (KeyError, OverflowError, TypeError) as error:
            param = f"{path}[{row}]" if len(ids) > 1 else path
            raise BadInput(
                f"{param} holds an id that {ENCODING} does not have", param=param
            ) from error
    return texts


@functools.cache
def _encoding() -> "tiktoken.Encoding | None":
    """None without tiktoken or a folder for its files: tiktoken fetches files, which an operator must allow."""
    if tiktoken is None or "TIKTOKEN_CACHE_DIR" not in os.environ:
        return None
    try:
        return tiktoken.get_encoding(ENCODING)
    except (OSError, ValueError) as error:  # errors of requests are OSErrors
        log.warning("tiktoken cannot load %s: %s", ENCODING, error)
        return None
