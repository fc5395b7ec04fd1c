"""Settings: read from the environment and from flags, refused with one line."""

from pathlib import Path
from typing import Any

import pytest

from heedful.app import settings
from heedful.app.settings import load
from heedful.runtime.errors import StartupError
from tests.writing import write

ORIGINS = (
    *("https://a.example", "http://127.0.0.1:8080", "http://[::1]:3000", "null", "*"),
    *("chrome-extension://abcdefgh", "https://xn--bcher-kva.example:8443"),
)
ALIASES = {"a": "b", "text-embedding-3-small": "c"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        # A short queue bounds the inputs of a request.
        ({"max_queue": "100"}, {"max_batch_inputs": 100}),
        # Refused later.
        ({"max_queue": "100", "max_batch_inputs": "200"}, {"max_batch_inputs": 200}),
        ({"max_queue": "10000"}, {"max_batch_inputs": 2048}),
        ({"aliases": "a=b, text-embedding-3-small = c,"}, {"aliases": ALIASES}),
        ({"cors_origins": ", ".join(ORIGINS)}, {"cors_origins": ORIGINS}),
    ],
)
def test_a_value_is_read(flags: dict[str, str], expected: dict[str, Any]) -> None:
    loaded = load(**flags)
    assert {field: getattr(loaded, field) for field in expected} == expected


def test_environment_is_read_and_a_flag_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_PORT", "9000")
    monkeypatch.setenv("HEEDFUL_MODELS", "/srv/models")
    loaded = load(port="9001")
    assert (loaded.port, loaded.models) == (9001, Path("/srv/models"))
    for field in ("tls_cert", "tls_key"):  # an empty path is none
        monkeypatch.setenv(settings.environment_name(field), "")
        assert getattr(load(), field) is None
        assert getattr(load(**{field: "kept"}), field) == Path("kept")


WRONG = """
port | http | valid integer
port | 70000 | 65535
device | tpu | 'auto', 'cpu' or 'cuda'
request_timeout | nan | finite
shutdown_timeout | 1e300 | less than or equal to 86400
hang_timeout | 0.2 | greater than or equal to 2
aliases | ms-san-embed | alias=model
aliases | a= | alias=model
aliases | a=b, c=d, a=e | the alias a is named twice
cors_origins | https://a.example/ | https://a.example/ is no origin
cors_origins | https://a.example, b.example | b.example is no origin
cors_origins | https://A.example | in lower case
cors_origins | https://*.example | scheme://host:port
cors_origins | https://a.example:443 | usual port
api_key | two words | without spaces
api_key |  | is empty: give a key, or leave the setting out
models |  | name a path, or leave the setting out
"""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_a_wrong_value_names_setting_value_and_remedy(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    field, value, remedy = case.split(" | ")
    monkeypatch.setenv(settings.environment_name(field), value)
    with pytest.raises(StartupError) as caught:
        load()
    line = str(caught.value)
    assert "\n" not in line
    for part in (settings.environment_name(field), settings.flag_name(field), remedy):
        assert part in line
    assert (repr(value) in line) == (field != "api_key")  # a key is never shown


def test_variables_that_are_no_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_API_KEY", "sesame")
    monkeypatch.setenv("HEEDFUL_DATA", "/srv/data")
    monkeypatch.setenv("heedful_max_queue", "100")
    assert load().warnings() == []
    assert "sesame" not in repr(load())
    monkeypatch.setenv("HEEDFUL_APIKEY", "open")  # without a word, the service would have no key
    monkeypatch.setenv("HEEDFUL_TLS_CERTIFICATE", "/srv/chain.pem")
    [warning] = load().warnings()
    assert warning.endswith(": HEEDFUL_APIKEY, HEEDFUL_TLS_CERTIFICATE")
    assert "open" not in warning


def test_installed_bundles_that_a_folder_bundles_hides_are_named(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`heedful fit --out bundles/mine` makes it in an empty folder."""
    place, packages = tmp_path / "installed", tmp_path / "packages"
    write(place, {"tiny-nli/card.json": "", "not-served/card.json": ""})
    files = {
        "others-1.dist-info/METADATA": "Name: others\nVersion: 1\n",
        "others-1.dist-info/entry_points.txt": "[heedful.bundles]\nothers = others:folder\n",
        "others.py": f"def folder():\n    return {str(place)!r}\n",
    }
    write(packages, files)
    (tmp_path / "bundles").symlink_to(models)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.chdir(tmp_path)
    [warning] = load().warnings()
    assert f"./bundles are served. not-served of {place} are not" in warning
    assert f"ln -s {place}/* bundles/" in warning
    assert load(models="bundles").warnings() == []


def test_idle_connections_outlast_the_pools_of_clients() -> None:
    """A client that keeps a connection for longer sends its next request to one that is being closed.

    aiohttp keeps one for 15 s, nginx's upstream for 60.
    """
    assert load().idle_timeout > 60
