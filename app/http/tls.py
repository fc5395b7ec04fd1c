"""The certificate: checked at the start, and read again at a reload."""

import logging
import ssl

from heedful.app.settings import Settings, environment_name
from heedful.runtime.errors import StartupError

log = logging.getLogger("heedful.server")

NAMES = f"{environment_name('tls_cert')} and {environment_name('tls_key')}"


def check_tls(settings: Settings) -> None:
    """Raises StartupError where the certificate or its key cannot be used."""
    if settings.tls_cert is None:
        if settings.tls_key:
            raise StartupError(f"{NAMES}: a key without a certificate: set both, or neither")
        return
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), settings)


def reload_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Read the certificate again, for new connections. An unusable certificate changes nothing and is logged."""
    try:
        check_tls(settings)  # in another context: OpenSSL keeps half of a certificate that fails
        _load(context, settings)
    except StartupError as error:
        log.error("the previous certificate stays: %s", error)


def _load(context: ssl.SSLContext, settings: Settings) -> None:
    """Raises StartupError."""
    assert settings.tls_cert

    def pass_phrase() -> str:
        """Without this, OpenSSL asks for it on the terminal."""
        raise StartupError(f"{NAMES}: the key is encrypted: name one without a pass phrase")

    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, pass_phrase)
    except OSError as error:  # errors of ssl are OSErrors
        raise StartupError(f"{NAMES}: {error.strerror or error}: name PEM files") from error
