"""Is a request's text fit to be parsed? Messages name the field and the remedy."""

from collections.abc import Sequence

from heedful.runtime.card import Card
from heedful.runtime.errors import BadInput, TooManyInputs
from heedful.text.parse import Parse
from heedful.text.tokenize import MAX_RUN


def check_count(count: int, param: str, most: int) -> None:
    """Raise BadInput for none, TooManyInputs for more than `most`."""
    if count == 0:
        raise BadInput(f"{param} is empty: send at least one", param=param)
    if count > most:
        message = f"{param} holds {count}, more than {most}: send several requests"
        raise TooManyInputs(message, param=param)


def check_texts(items: Sequence[str | Parse], params: Sequence[str]) -> None:
    """Raise BadInput for a text that is blank or that no UTF-8 client could have meant."""
    for item, param in zip(items, params, strict=True):
        text = item if isinstance(item, str) else item.text
        if not text or text.isspace():
            raise BadInput(f"{param} is blank: send a text", param=param)
        if "\0" in text:
            raise BadInput(f"{param} holds a NUL character: remove it", param=param)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"{param} holds half of a surrogate pair: send valid Unicode"
            raise BadInput(message, param=param) from error


def check_parse(
    parse: Parse, param: str, card: Card, pieces: int | None, *, truncate: bool
) -> None:
    """Raise BadInput for a text that was cut without leave, or that holds no token.

    `pieces`: how many the model reads, None where it reads words.
    """
    if parse.cut and not truncate:
        most = f"{card.max_tokens} tokens, " + (f"{pieces} word pieces, " if pieces else "")
        raise BadInput(
            f"{param} is longer than {card.name} reads ({most}and "
            f"{MAX_RUN} characters without white space): shorten it, or set truncate to true",
            param=param,
            code="input_too_long",
        )
    if not len(parse):
        raise BadInput(f"{param} holds no token: send a text", param=param)
