"""configuration: docs/configuration.md, the reference of a run's fields."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.files.atomic import write_file
from heedful.training.config import RunConfig

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
HEAD = """# Configuration of a run

`heedful train FILE.toml` reads these fields; `configs/` has the published runs.
A field without a default must be given. `python -m tools configuration` writes this page from `training/config.py`.
"""
BOUNDS = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "to {}",
    "exclusiveMaximum": "below {}",
}
"""Keywords of JSON Schema -> words."""


def page() -> str:
    """The page in Markdown: a table of the file's top-level fields, then a table of each section."""
    schema = RunConfig.model_json_schema()
    top_level, sections = {}, {}
    for name, field in schema["properties"].items():
        section = _section(field, schema["$defs"])
        if section:
            sections[name] = section
        else:
            top_level[name] = field
    parts = [HEAD, *_table("The file", schema | {"properties": top_level})]
    for section in sections.values():
        heading, _, _ = section["description"].partition(":")
        parts += _table(heading, section)
    return "\n".join(parts)


def _section(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a field that is a section of the file; None for another field."""
    for option in (field, *field.get("anyOf", ())):
        if "$ref" in option:
            section: dict[str, Any] = definitions[option["$ref"].rpartition("/")[2]]
            return section
    return None


def _table(heading: str, section: dict[str, Any]) -> Iterator[str]:
    text = " ".join(section["description"].split()).removeprefix(f"{heading}: ")
    yield f"## {heading}\n"
    yield f"{text[0].upper()}{text[1:]}\n"
    yield "| field | type | default | |"
    yield "|---|---|---|---|"
    required = section.get("required", ())
    for name, field in section["properties"].items():
        default = "" if name in required else _value(field.get("default"))
        yield f"| `{name}` | {_type(field)} | {default} | {' '.join(field['description'].split())} |"
    yield ""


def _type(field: dict[str, Any]) -> str:
    """The type and its bounds in JSON Schema, in words."""
    if "anyOf" in field:
        return " or ".join(
            _type(option) for option in field["anyOf"] if option.get("type") != "null"
        )
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    if field["type"] == "object":
        return "table"
    name = {"number": "float", "string": field.get("format", "string")}.get(
        field["type"], field["type"]
    )
    return " ".join([name, *(BOUNDS[key].format(field[key]) for key in BOUNDS if key in field)])


def _value(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, str):
        return f'`"{default}"`'
    return f"`{list(default) if isinstance(default, list | tuple) else default}`"


def command() -> None:
    """Write docs/configuration.md from training/config.py."""
    write_file(PAGE, lambda part: part.write_text(page(), encoding="utf-8"))
