"""Token ids in place of texts, as clients of OpenAI send them that cut long texts themselves."""

import asyncio
import functools
import logging
import os
from collections.abc import Sequence

from heedful.runtime.errors import BadInput

try:
    import tiktoken
except ImportError:
    tiktoken = None  # type: ignore[assignment]  # it is no part of the plain install

log = logging.getLogger("heedful.server")

ENCODING = "cl100k_base"
"""OpenAI's for its embedding models; langchain-openai takes it for every name that it does not know."""
REMEDY = (
    "send the text (langchain-openai: check_embedding_ctx_length=False), or install tiktoken next to the "
    "service with TIKTOKEN_CACHE_DIR naming a folder that holds its file of cl100k_base"
)


async def decode(ids: Sequence[Sequence[int]], path: str) -> list[str]:
    """The texts of lists of token ids. Raises BadInput if an id is none, or without the encoding."""
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
            where = f"{path}[{row}]" if len(ids) > 1 else path
            raise BadInput(
                f"{where} holds an id that {ENCODING} does not have", param=where
            ) from error
    return texts


@functools.cache
def _encoding() -> "tiktoken.Encoding | None":
    """None without tiktoken, or without a folder for its files: nothing is fetched unless an operator names one."""
    if tiktoken is None or "TIKTOKEN_CACHE_DIR" not in os.environ:
        return None
    try:
        return tiktoken.get_encoding(ENCODING)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        log.warning("tiktoken cannot load %s: %s", ENCODING, error)
        return None
