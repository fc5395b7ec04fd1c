"""Settings: read from the environment and from flags, refused with one line."""

from pathlib import Path

import pytest

from heedful.app import settings
from heedful.app.settings import SettingsError, load
from heedful.cli import serve


def test_a_short_queue_bounds_the_inputs_of_a_request() -> None:
    assert load(max_queue="100").max_batch_inputs == 100
    assert load(max_queue="100", max_batch_inputs="200").max_batch_inputs == 200  # refused later
    assert load(max_queue="10000").max_batch_inputs == 2048


@pytest.mark.parametrize("field", ["tls_cert", "tls_key"])
def test_an_empty_path_is_none(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setenv(settings.environment_name(field), "")
    assert getattr(load(), field) is None
    assert getattr(load(**{field: "kept"}), field) == Path("kept")


def test_aliases_are_read() -> None:
    assert load(aliases="a=b, text-embedding-3-small = c,").aliases == {
        "a": "b",
        "text-embedding-3-small": "c",
    }


def test_origins_that_browsers_send_are_taken() -> None:
    origins = (
        *("https://a.example", "http://127.0.0.1:8080", "http://[::1]:3000", "null", "*"),
        *("chrome-extension://abcdefgh", "https://xn--bcher-kva.example:8443"),
    )
    assert load(cors_origins=",".join(origins)).cors_origins == origins


def test_environment_is_read_and_a_flag_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_PORT", "9000")
    monkeypatch.setenv("HEEDFUL_MODELS", "/srv/models")
    monkeypatch.setenv("HEEDFUL_CORS_ORIGINS", "https://a.example, https://b.example")
    found = load(port="9001")
    assert found.port == 9001
    assert found.models == Path("/srv/models")
    assert found.cors_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("port", "http", "valid integer"),
        ("port", "70000", "65535"),
        ("device", "tpu", "'auto', 'cpu' or 'cuda'"),
        ("max_queue", "0", "greater than or equal to 1"),
        ("request_timeout", "nan", "finite"),
        ("shutdown_timeout", "-1", "greater than or equal to 0"),
        ("shutdown_timeout", "1e300", "less than or equal to 86400"),
        ("hang_timeout", "0.2", "greater than or equal to 2"),
        ("log_format", "xml", "'text' or 'json'"),
        ("log_level", "loud", "'info', 'warning' or 'error'"),
        ("aliases", "ms-san-embed", "alias=model"),
        ("aliases", "a=", "alias=model"),
        ("aliases", "a=b, c=d, a=e", "the alias a is there twice"),
        ("cors_origins", "https://a.example/", "https://a.example/ is no origin"),
        ("cors_origins", "https://a.example, b.example", "b.example is no origin"),
        ("cors_origins", "https://A.example", "in lower case"),
        ("cors_origins", "https://*.example", "scheme://host:port"),
        ("cors_origins", "https://a.example:443", "usual port"),
        ("api_key", "two words", "without spaces"),
        ("api_key", "", "is empty: give a key, or leave the setting out"),
        ("api_keys", "", "name a path, or leave the setting out"),
        ("models", "", "name a path, or leave the setting out"),
    ],
)
def test_a_wrong_value_names_setting_value_and_remedy(
    monkeypatch: pytest.MonkeyPatch, field: str, value: str, remedy: str
) -> None:
    monkeypatch.setenv(settings.environment_name(field), value)
    with pytest.raises(SettingsError) as caught:
        load()
    line = str(caught.value)
    assert "\n" not in line
    assert settings.environment_name(field) in line
    assert settings.flag_name(field) in line
    assert remedy in line
    assert (repr(value) in line) == (field != "api_key")  # a key is never shown


def test_the_key_is_not_in_the_settings_text() -> None:
    assert "sesame" not in repr(load(api_key="sesame"))


def test_every_setting_has_a_flag_and_help() -> None:
    for field in settings.Settings.model_fields:
        assert settings.environment_name(field) in serve.help_text(field)
        assert serve.type_name(field).split("|")[0]


def test_variables_that_are_no_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_API_KEY", "sesame")
    monkeypatch.setenv("HEEDFUL_DATA", "/srv/data")
    monkeypatch.setenv("heedful_max_queue", "100")
    assert load().warnings() == []
    monkeypatch.setenv("HEEDFUL_APIKEY", "open")  # without a word, the service would have no key
    monkeypatch.setenv("HEEDFUL_TLS_CERTIFICATE", "/srv/chain.pem")
    [warning] = load().warnings()
    assert warning.endswith(": HEEDFUL_APIKEY, HEEDFUL_TLS_CERTIFICATE")
    assert "open" not in warning


def test_idle_connections_outlast_the_pools_of_clients() -> None:
    """A client that keeps a connection for longer sends its next request to one that is being closed."""
    pools = {
        "httpx, openai": 5.0,
        "aiohttp": 15.0,
        "reports of users": 30.0,
        "nginx upstream": 60.0,
    }
    assert load().idle_timeout > max(pools.values())
