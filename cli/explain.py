"""explain: a file that shows what a model attends to in a sentence or a pair, and what its answer rests on."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from heedful.app.schemas.explain_bodies import Priors
from heedful.cli.options import MODELS, Models, Name, ServedParser
from heedful.cli.placement import Place
from heedful.library import explain_page
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.model_registry import Task


def command(
    text: Annotated[str, typer.Argument(help="A sentence, or the first one of a pair.")],
    hypothesis: Annotated[str | None, typer.Option(help="The second sentence of a pair.")] = None,
    model: Name = None,
    priors: Annotated[
        str, typer.Option(help="Of direction, word, dependency, alpha: word=false,alpha=0.5.")
    ] = "",
    evidence: Annotated[
        bool, typer.Option(help="What each word says for and against the answer.")
    ] = True,
    to: Annotated[Path, typer.Option(help="The file, .html.")] = Path("explain.html"),
    models: Models = MODELS,
    parser: ServedParser = None,
) -> None:
    """Write what a model attends to, and what its answer rests on, as one HTML page, without a server.

    Example: heedful explain "A fine film." --model ms-san-sst2 --to explain.html
    """
    explain_page.check_suffix(to)
    options = read_priors(priors, evidence=evidence)
    task: Task = "explain" if hypothesis is None else "nli"
    with Place(models, parser, "cpu").load(model, task) as loaded:
        try:
            explanation = loaded.explain(text, hypothesis, options)
        except BadInput as error:
            if error.code != "input_too_long":
                raise
            # The command has no such option.
            message = str(error).removesuffix(", or set truncate=True")
            raise BadInput(message, param=error.param, code=error.code) from None
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        explanation.save(to)
    except OSError as error:
        raise BadInput(f"--to: cannot write {to}: {error.strerror}", param="to") from error
    typer.echo(f"{to}", err=True)


def read_priors(typed: str, *, evidence: bool = False) -> ExplainOptions:
    """Parse `name=value` pairs with commas between: true, false, a number for alpha. Raises BadInput."""
    fields: dict[str, Any] = {}
    for pair in filter(None, typed.split(",")):
        name, _, value = pair.partition("=")
        try:
            fields[name.strip()] = json.loads(value)
        except json.JSONDecodeError:
            message = f"--priors: {pair!r} is not name=true, name=false or alpha=NUMBER"
            raise BadInput(message, param="priors") from None
    try:
        priors = Priors.model_validate(fields).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"--priors: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise BadInput(message, param="priors") from error
    alpha = priors.pop("alpha", None)
    return ExplainOptions(alpha=alpha, priors=priors, evidence=evidence)
