"""docs/configuration.md is what the fields of training/config.py say."""

from tools.configuration import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """A field without a description is a KeyError."""
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools configuration"
