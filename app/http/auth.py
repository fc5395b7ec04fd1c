"""Named API keys, from the setting and from a file that is read again when it changes."""

import asyncio
import hashlib
import logging
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app import errors
from heedful.app.http.request_record import PUBLIC, RECORD, Record
from heedful.app.settings import Settings, environment_name
from heedful.runtime.errors import StartupError

log = logging.getLogger("heedful.server")

DEFAULT = "default"
"""The name of the key that is a setting."""
MAX_KEYS = 4096


class KeyEntry(BaseModel):
    """One table of the file; its name is the key's."""

    model_config = ConfigDict(strict=True, extra="forbid")

    key: str = Field(pattern=r"^[!-~]+$")
    priority: Literal["normal", "bulk"] = Field("normal", alias="class")


_FILE = TypeAdapter(dict[str, KeyEntry])


@dataclass(frozen=True, slots=True)
class Key:
    """What the service knows of a key: its name, and whether its requests are bulk."""

    name: str
    bulk: bool = False


class Keys:
    """Keys by their digests, so that the time of a comparison reveals nothing of a key."""

    def __init__(self, settings: Settings) -> None:
        """Raises StartupError if the file is wrong."""
        self._path = settings.api_keys
        self._setting_keys: dict[bytes, Key] = {}
        if settings.api_key is not None:
            self._setting_keys[_digest(settings.api_key.get_secret_value())] = Key(DEFAULT)
        self._version: object = None
        self._keys: Mapping[bytes, Key] = self._setting_keys
        if self._path is not None:
            self._version = _version(self._path)
            try:
                self._keys = self._setting_keys | self._read(self._path)
            except (OSError, ValueError) as error:
                raise StartupError(f"{environment_name('api_keys')}: {_reason(error)}") from error

    @property
    def needed(self) -> bool:
        """Whether requests need a key. They do also while the file holds no keys."""
        return bool(self._setting_keys) or self._path is not None

    def find(self, secret: str) -> Key | None:
        return self._keys.get(_digest(secret))

    async def keep_fresh(self) -> None:
        """Refresh every second, until the task is cancelled."""
        while True:
            await asyncio.sleep(1.0)
            self.refresh()

    def refresh(self) -> None:
        """Read the file again if it has changed. A wrong file changes no keys."""
        if self._path is None or (version := _version(self._path)) == self._version:
            return
        try:
            self._keys = self._setting_keys | self._read(self._path)
            log.info("read the API keys of %s", self._path.name)
        except (OSError, ValueError) as error:
            log.error("the previous API keys stay: %s", _reason(error))
            if isinstance(error, OSError) and version is not None:
                return  # the next try may succeed, with this version
        self._version = version

    def _read(self, path: Path) -> dict[bytes, Key]:
        """Raises OSError, ValueError."""
        entries = _FILE.validate_python(tomllib.loads(path.read_text(encoding="utf-8-sig")))
        if len(entries) > MAX_KEYS:
            raise ValueError(f"more than {MAX_KEYS} keys")
        keys = {
            _digest(entry.key): Key(name, entry.priority == "bulk")
            for name, entry in entries.items()
        }
        if len(keys) < len(entries):
            raise ValueError("two names have the same key: give each another")
        return keys


class ApiKey:
    """Refuses requests without `Authorization: Bearer KEY`, but for PUBLIC routes and GET of `pages`."""

    def __init__(self, app: ASGIApp, *, keys: Keys, pages: frozenset[str], names: bool) -> None:
        """With `names`, requests are counted by the names of their keys."""
        self._app, self._keys, self._pages, self._names = app, keys, pages, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_public(scope):
            record: Record = scope[RECORD]
            scheme, _, secret = record.header(b"authorization").partition(" ")
            key = self._keys.find(secret.strip()) if scheme.lower() == "bearer" else None
            if key is None:
                message = "send the API key as 'Authorization: Bearer KEY'"
                raise errors.Refused(message, code="unauthorized")
            record.key, record.bulk = key.name if self._names else None, record.bulk or key.bulk
        await self._app(scope, receive, send)

    def _is_public(self, scope: Scope) -> bool:
        path = scope["path"]
        return path in PUBLIC or (scope["method"] == "GET" and path in self._pages)


def _version(path: Path) -> tuple[int, int, int] | None:
    """A value that changes with the file; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _reason(error: Exception) -> str:
    """What is wrong with the file, in words that quote no key."""
    if isinstance(error, ValidationError):
        first: Any = error.errors(include_input=False)[0]
        reason = "must be a table with key" if first["type"] == "model_type" else first["msg"]
        return f"{'.'.join(map(str, first['loc']))}: {reason}"
    return str(error)
