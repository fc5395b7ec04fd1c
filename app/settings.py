"""The settings: each is a variable HEEDFUL_<NAME>, and a flag of `heedful serve` generated from its field."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from heedful.runtime.bundles import shipped
from heedful.runtime.errors import StartupError

PREFIX = "HEEDFUL_"
OTHER_VARIABLES = frozenset({"HEEDFUL_DATA", "HEEDFUL_KERNELS"})
"""Variables that begin with PREFIX and are read elsewhere: by training.data_folder and setup.py."""

ORIGIN = re.compile(
    r"\*|null|(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d+)?"
)
"""*, or an origin as browsers write it in the header Origin (RFC 6454, 6.2): the two are compared as text."""


def _split(value: object) -> object:
    """ "a, b" -> ["a", "b"]: variables and flags separate list items by commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _not_empty(value: object) -> object:
    """Refuse "" for a path without which the service would serve other models, or without keys."""
    if value == "":
        raise ValueError("name a path, or leave the setting out")
    return value


OptionalPath = Annotated[Path | None, BeforeValidator(lambda path: path or None)]
"""None for "" too, to which Compose's ${TLS_CERT:-} sets a variable, and which as a path is the working directory."""


def _pairs(value: object) -> object:
    """ "a=b, c=d" -> {"a": "b", "c": "d"}."""
    if not isinstance(value, str):
        return value
    pairs = [part.split("=", 1) for part in value.split(",") if part.strip()]
    if any(len(pair) < 2 or not all(map(str.strip, pair)) for pair in pairs):
        raise ValueError("write alias=model, separated by commas")
    aliases = [alias.strip() for alias, _ in pairs]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise ValueError(f"the alias {alias} is named twice: leave one out")
    return {alias.strip(): model.strip() for alias, model in pairs}


def _seconds(default: float, description: str) -> Any:
    return Field(default, gt=0, allow_inf_nan=False, description=description)


class Settings(BaseSettings):
    """The operator's settings: the only place for names, types, defaults and descriptions."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address or name to listen on; or unix:PATH, or fd:NUMBER, a socket that systemd passes.",
    )
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    models: Annotated[Path, BeforeValidator(_not_empty)] = Field(
        shipped.LOCAL_FOLDER,
        description="Folder of the bundles to serve. If this is not set and there is no folder `bundles`, "
        "the bundles of the package heedful-bundles.",
    )
    parser: str | None = Field(
        None,
        min_length=1,
        description="spaCy pipeline, a folder or an installed package; default <models>/parser, or the "
        "shipped one where there is none, if a model needs it.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where models run; cuda fails if it is not available."
    )
    api_key: SecretStr | None = Field(
        None,
        description="Key that requests must send as 'Authorization: Bearer KEY'; default none.",
    )
    api_keys: Annotated[Path | None, BeforeValidator(_not_empty)] = Field(
        None, description="TOML file of named API keys, read again when it changes."
    )
    max_batch_inputs: int = Field(2048, ge=1, description="Maximum inputs per request.")
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=1, description="Maximum bytes per body.")
    max_queue: int = Field(
        8192,
        ge=1,
        description="Maximum inputs in flight per serving process; more are refused with 429. "
        "Requests of a few inputs may use an eighth more.",
    )
    truncate: bool = Field(
        False,
        description="Cut a text that is too long for the model where a request does not say what to do.",
    )
    request_timeout: float = _seconds(30.0, "Seconds until a request fails with 504.")
    max_url_bytes: int = Field(16384, ge=1, description="Maximum bytes per URL; more get a 414.")
    max_header_bytes: int = Field(
        32768, ge=1, description="Maximum bytes of a request's headers, or of its trailers."
    )
    max_headers: int = Field(100, ge=1, description="Maximum header lines per request.")
    head_timeout: float = _seconds(
        10.0, "Seconds from a connection, or from a request's first byte, to the end of its head."
    )
    idle_timeout: float = _seconds(75.0, "Seconds that a connection may wait for its next request.")
    write_timeout: float = _seconds(
        30.0, "Seconds that a client may read nothing of an answer that waits for it."
    )
    max_connections: int | None = Field(
        None,
        ge=1,
        description="Maximum open connections; of more, those that wait longest for a request are "
        "closed. Default what the limit on open files allows.",
    )
    hang_timeout: float = Field(
        5.0,
        ge=2,
        allow_inf_nan=False,
        description="Seconds until a serving process whose event loop hangs is killed; after half of "
        "them the service is not ready.",
    )
    shutdown_timeout: float = Field(
        20.0,
        ge=0,
        le=86400,
        allow_inf_nan=False,
        description="Seconds after SIGTERM to answer requests in flight.",
    )
    processes: int | None = Field(
        None, ge=1, description="Serving processes behind the port; default one a core."
    )
    threads: int | None = Field(
        None,
        ge=1,
        description="Threads that run models, per serving process; default none: its event loop does.",
    )
    cache_items: int = Field(
        8192, ge=0, description="Maximum cached vectors, within 32 MiB; 0 disables caching."
    )
    tls_cert: OptionalPath = Field(
        None, description="PEM file of the certificate chain: the service then speaks HTTPS."
    )
    tls_key: OptionalPath = Field(
        None, description="PEM file of the certificate's private key; default in the former."
    )
    log_format: Literal["text", "json"] = Field("text", description="Format of the log lines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info",
        description="Least severe log lines that are written; requests have theirs at info, probes and "
        "scrapes that succeed at debug.",
    )
    metrics_keys: bool = Field(
        False,
        description="Count requests by the name of their API key, for all to see at /metrics.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        (), description="Origins that browsers may call from, separated by commas; * for any."
    )
    aliases: Annotated[dict[str, str], NoDecode, BeforeValidator(_pairs)] = Field(
        {},
        description="Other names of models, as in text-embedding-3-small=ms-san-embed, separated by commas.",
    )

    @field_validator("api_key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not key.get_secret_value():
            raise ValueError("is empty: give a key, or leave the setting out")
        if key and not all("!" <= character <= "~" for character in key.get_secret_value()):
            raise ValueError("use printable ASCII characters without spaces")
        return key

    @field_validator("cors_origins")
    @classmethod
    def _browsers_send_such_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin} is no origin that a browser sends: write scheme://host or "
                    "scheme://host:port in lower case, without a path or the scheme's usual port; or *"
                )
        return origins

    @model_validator(mode="after")
    def _a_full_request_fits_the_queue(self) -> Self:
        """Lower the default of `max_batch_inputs` to `max_queue`, so that an operator may set the latter only."""
        if (
            "max_batch_inputs" not in self.model_fields_set
            and self.max_queue < self.max_batch_inputs
        ):
            self.__dict__["max_batch_inputs"] = self.max_queue  # the model is frozen
        return self

    def warnings(self) -> list[str]:
        """One of unknown variables, and one of installed bundles that are not served because there is a folder
        `bundles`, which nobody named.

        Unknown flags are errors, but a variable may belong to a later version.
        """
        known = OTHER_VARIABLES.union(map(environment_name, type(self).model_fields))
        prefixed = (name for name in os.environ if name.upper().startswith(PREFIX))
        unknown = sorted(name for name in prefixed if name.upper() not in known)  # in any case
        warnings = [f"ignored, no setting has this name: {', '.join(unknown)}"] if unknown else []
        if "models" not in self.model_fields_set:
            warnings += [
                f"only the bundles in ./{self.models} are served. {', '.join(names)} of {folder} are not: to serve "
                f"them too, `ln -s {folder}/* {self.models}/` and start again; or name a folder with --models"
                for folder, names in shipped.left_out(self.models).items()
            ]
        return warnings


def load(**flags: str) -> Settings:
    """Read the environment; `flags` override it. Raises StartupError for an invalid value, with its remedy."""
    try:
        settings = Settings(**flags)  # type: ignore[arg-type]  # strings, as in the environment
    except ValidationError as error:
        raise StartupError(_message(error.errors()[0])) from None
    if "models" not in settings.model_fields_set:
        folder = shipped.models_folder()
        if folder != settings.models:
            return settings.model_copy(update={"models": folder})
    return settings


def environment_name(field: str) -> str:
    return PREFIX + field.upper()


def flag_name(field: str) -> str:
    return "--" + field.replace("_", "-")


def _message(error: Any) -> str:
    field = str(error["loc"][0])
    value = "" if field == "api_key" else f" {error['input']!r} is invalid:"
    reason = error["msg"].removeprefix("Value error, ")
    return f"{environment_name(field)} ({flag_name(field)}):{value} {reason[0].lower()}{reason[1:]}"
