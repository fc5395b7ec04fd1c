"""An explanation that a notebook draws."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

from heedful.files.atomic import write_file
from heedful.library import explain_page
from heedful.runtime.answers import Result
from heedful.runtime.bundles.card import Card
from heedful.runtime.explain.explain import ExplainResult
from heedful.runtime.explain.run import ExplainOptions


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """`answer` has the fields of /explain (docs/explain.md), with numpy arrays in place of lists."""

    answer: Mapping[str, Any]
    multi_label: bool = False  # whether a text may have several labels

    @classmethod
    def make(cls, card: Card, result: Result[ExplainResult], options: ExplainOptions) -> Self:
        answer = result.value.answer(card.name)
        for name in ("faithfulness", "evidence", "curves"):
            if name in answer:
                sentences = answer[name]["sentences"]
                answer[name]["sentences"] = [
                    sentence and asdict(sentence) for sentence in sentences
                ]
        if options.trust:
            answer["trust"] = asdict(result.trust[0])
        return cls(answer, card.multi_label)

    @property
    def tokens(self) -> list[list[str]]:
        """The tokens of each sentence."""
        sentences = self.answer["sentences"]
        return [[token["text"] for token in sentence["tokens"]] for sentence in sentences]

    @property
    def html(self) -> str:
        """A page that loads nothing."""
        return explain_page.html(self.answer, multi_label=self.multi_label)

    def save(self, file: str | Path) -> None:
        """Write the page. The file appears whole or not at all. Raises BadInput unless its name ends in .html."""
        file = Path(file)
        explain_page.check_suffix(file)
        page = self.html
        write_file(file, lambda part: part.write_text(page, encoding="utf-8"))

    def __repr__(self) -> str:
        texts = ", ".join(repr(sentence["text"]) for sentence in self.answer["sentences"])
        return f"<Explanation {self.answer['model']}: {texts}>"

    def _repr_html_(self) -> str:
        """The page in a frame that scrolls, so that its styles and scripts do not affect the notebook."""
        style = "width:100%;height:640px;border:0"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'
