"""scikit-learn estimators. They need the extra `sklearn`: pip install 'heedful[sklearn]'."""

from heedful.library.estimators import HeedfulClassifier, SentenceEncoder

__all__ = ["HeedfulClassifier", "SentenceEncoder"]
