"""Every setting: a variable HEEDFUL_<NAME>, and a flag of `heedful serve` made from its field."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "HEEDFUL_"


class SettingsError(Exception):
    """A setting has a wrong value; the message is one line with setting, value and remedy."""


def _split(value: object) -> object:
    """ "a, b" -> ["a", "b"]: lists are written with commas, in the environment and as flags."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


class Settings(BaseSettings):
    """What the operator decides. Names, types, defaults and descriptions stand here only."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    models: Path = Field(Path("bundles"), description="Folder of the bundles to serve.")
    parser: str | None = Field(
        None,
        min_length=1,
        description="spaCy pipeline, a folder or an installed package; default <models>/parser.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where models run; cuda that does not come up is an error."
    )
    api_key: SecretStr | None = Field(
        None,
        min_length=1,
        description="Key that requests must send as 'Authorization: Bearer KEY'; default none.",
    )
    max_batch_inputs: int = Field(512, ge=1, description="Most inputs in one request.")
    max_body_bytes: int = Field(2 * 1024 * 1024, ge=1, description="Most bytes in a body.")
    max_queue: int = Field(
        2048,
        ge=1,
        description="Most inputs in hand in a serving process; more are refused with 429.",
    )
    request_timeout: float = Field(
        30.0, gt=0, allow_inf_nan=False, description="Seconds until a request is given up with 504."
    )
    grace: float = Field(
        20.0, ge=0, allow_inf_nan=False, description="Seconds to answer what is in hand on SIGTERM."
    )
    processes: int | None = Field(
        None,
        ge=1,
        description="Serving processes behind the port; default what cgroup and affinity give, 4 at most, "
        "and 1 with a GPU.",
    )
    parse_workers: int | None = Field(
        None, ge=1, description="Parse processes of each; default its share of the processors."
    )
    threads: int | None = Field(
        None,
        ge=1,
        description="Batches that each runs side by side; default its share of the processors.",
    )
    cache_items: int = Field(
        8192,
        ge=0,
        description="Most parses and vectors that are kept, of each, within 32 MiB; 0 for none.",
    )
    log_format: Literal["text", "json"] = Field("text", description="Shape of the log lines.")
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        (), description="Origins that browsers may call from, with commas between; * for any."
    )

    @field_validator("api_key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key and not all("!" <= character <= "~" for character in key.get_secret_value()):
            raise ValueError("use printable ASCII characters without spaces")
        return key


def load(**flags: str) -> Settings:
    """Read the environment; `flags` win over it. Raises SettingsError for a wrong value."""
    try:
        return Settings(**flags)  # type: ignore[arg-type]  # strings, as the environment has them
    except ValidationError as error:
        raise SettingsError(_line(error.errors()[0])) from None


def environment_name(field: str) -> str:
    return PREFIX + field.upper()


def flag_name(field: str) -> str:
    return "--" + field.replace("_", "-")


def _line(error: Any) -> str:
    field = str(error["loc"][0])
    value = "" if field == "api_key" else f" {error['input']!r} is wrong:"
    reason = error["msg"].removeprefix("Value error, ")
    return f"{environment_name(field)} ({flag_name(field)}):{value} {reason[0].lower()}{reason[1:]}"


def type_name(field: str) -> str:
    """INT, FLOAT, PATH or TEXT, or the values to choose from."""
    annotation = Settings.model_fields[field].annotation
    choices = get_args(annotation) or (annotation,)
    if all(isinstance(choice, str) for choice in choices):
        return "|".join(choices)
    names = {int: "INT", float: "FLOAT", Path: "PATH"}
    return names.get(choices[0], "TEXT")


def help_text(field: str) -> str:
    """The description, the variable, and the default where there is one to show."""
    info = Settings.model_fields[field]
    default = "" if info.default in (None, ()) else f", default {info.default}"
    return f"{info.description} ({environment_name(field)}{default})"
