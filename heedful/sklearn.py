"""scikit-learn estimators. They need the extra `sklearn`: pip install 'heedful[sklearn]'."""

try:
    from heedful.library.estimators import HeedfulClassifier, SentenceEncoder
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ModuleNotFoundError(
        "heedful.sklearn needs the extra sklearn: pip install 'heedful[sklearn]'", name=error.name
    ) from error

__all__ = ["HeedfulClassifier", "SentenceEncoder"]
