"""explain: a file that shows what a model attends to in a sentence or a pair."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from heedful.app.schemas.explain_bodies import Priors
from heedful.cli.options import MODELS, Models, Name, ServedParser
from heedful.files.atomic import write_file
from heedful.library import explain_page
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.explain.serialize import explanation
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.runtime.service import Options, Service, running


def command(
    text: Annotated[str, typer.Argument(help="A sentence, or the first one of a pair.")],
    hypothesis: Annotated[str | None, typer.Option(help="The second sentence of a pair.")] = None,
    model: Name = None,
    priors: Annotated[
        str, typer.Option(help="Priors to change, such as dependency=false,alpha=0.5.")
    ] = "",
    to: Annotated[Path, typer.Option(help="The file, .html.")] = Path("explain.html"),
    models: Models = MODELS,
    parser: ServedParser = None,
) -> None:
    """Write what a model attends to as one HTML page, without a server.

    Example: heedful explain "A fine film." --model ms-san-sst2 --to explain.html
    """
    question = Question(text, hypothesis, model, priors)
    write(question, to, Options(models, parser, "cpu"))
    typer.echo(f"{to}", err=True)


@dataclass(frozen=True, slots=True)
class Question:
    """`priors` as typed: `dependency=false,alpha=0.5`."""

    text: str
    second: str | None = None
    model: str | None = None
    priors: str = ""


def write(question: Question, to: Path, options: Options) -> None:
    """Ask the models of `options`, in this process, and write `to`, completely or not at all.

    Raises BadInput for another suffix, a wrong prior or a text that the model cannot read, and the
    other errors of the runtime.
    """
    explain_page.check_suffix(to)
    explain_options = read_priors(question.priors)
    found, several = asyncio.run(_ask(question, explain_options, options))
    page = explain_page.html(found, several=several)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_file(to, lambda part: part.write_text(page, encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--to: cannot write {to}: {error.strerror}", param="to") from error


def read_priors(typed: str) -> ExplainOptions:
    """Parse `name=value` pairs with commas between: true, false, a number for alpha. Raises BadInput."""
    fields: dict[str, Any] = {}
    for one in filter(None, typed.split(",")):
        name, _, value = one.partition("=")
        try:
            fields[name.strip()] = json.loads(value)
        except json.JSONDecodeError:
            message = f"--priors: {one!r} is not name=true, name=false or alpha=NUMBER"
            raise BadInput(message, param="priors") from None
    try:
        priors = Priors.model_validate(fields).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"--priors: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise BadInput(message, param="priors") from error
    return ExplainOptions(alpha=priors.pop("alpha", None), priors=priors)


async def _ask(
    question: Question, explain_options: ExplainOptions, options: Options
) -> tuple[explain_page.Answer, bool]:
    """The answer, and whether a text may have several labels."""
    async with running(options) as service:
        texts, model = [question.text], question.model
        task: Task = "explain"
        if question.second is not None:
            texts.append(question.second)
            named = service.cards.get(model or "")
            task = "relatedness" if named and named.kind == "relatedness" else "nli"
        found = await explained(service, texts, explain_options, task=task, model=model)
        return found, service.cards[found["model"]].multi_label


async def explained(
    service: Service,
    texts: list[str],
    explain_options: ExplainOptions,
    *,
    task: Task = "explain",
    model: str | None = None,
) -> explain_page.Answer:
    """The answer of /explain. Raises BadInput for a text that is too long, and the runtime's errors."""
    paths = ["the text", "--hypothesis"][: len(texts)]
    inputs = Inputs(texts, paths, texts_per_row=len(texts))
    try:
        result = await service.answer(service.bind(task, model).explain(inputs, explain_options))
    except BadInput as error:
        if error.code != "input_too_long":
            raise
        said = str(error).removesuffix(", or set truncate to true")  # there is no such option
        raise BadInput(said, param=error.param, code=error.code) from None
    return explanation(result.card, *result.value)
