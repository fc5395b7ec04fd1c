"""Tables of texts -> tables of answers, for Ray Data, Spark and Daft, which call it with batches of rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heedful.library.inputs import CHUNK, strings
from heedful.library.load import load
from heedful.library.model import Question
from heedful.runtime.errors import RequestError
from heedful.runtime.inputs import Inputs

TableTask = Literal["embed", "classify", "nli"]
OUTCOME = "outcome"
"""Column that says whether a row was answered: "ok" or "error"."""
ANSWER_COLUMNS = frozenset({"embedding", "label", "probabilities", OUTCOME, "error"})
"""The column of ids must have another name."""


class TableModel:
    """A bundle that answers the rows of tables on one core, in each process.

    A row that cannot be answered has the reason in the column `error`; the others are answered.
    """

    def __init__(
        self,
        task: TableTask,
        model: str,
        *,
        texts: Sequence[str],
        id: str,
        keywords: Mapping[str, Any] | None = None,
        **load_keywords: Any,
    ) -> None:
        """`texts` names the column of the text, or those of premise and hypothesis; `id` that of ids.

        `keywords` are those of `runtime.inference.Inference`'s method, such as `truncate`; `load_keywords` are those of
        `heedful.load`. Raises what `heedful.load` raises, WrongTask, and BadInput for a wrong keyword.
        """
        self._id, self._texts = id, list(texts)
        self.model = load(model, threads=1, **load_keywords)
        self._question = Question(task, keywords or {})
        # Warms up, and raises for wrong arguments.
        self._width = self._ask([["A text."] * len(self._texts)]).shape[1]

    def __call__(self, table: pa.Table) -> pa.Table:
        """A row for each row of the table, in order: the id, the answer, `outcome` and `error`.

        The answer is `embedding` (D floats), or `label` (null where the model abstains; of a multi-label model a list
        of labels) and `probabilities` (a field for each label).
        """
        columns = [table[name].to_pylist() for name in self._texts]
        rows = [
            ["" if text is None else text for text in row] for row in zip(*columns, strict=True)
        ]
        answers = np.zeros((len(rows), self._width))
        errors: list[str | None] = []
        for begin in range(0, len(rows), CHUNK):
            for answer in self._answers(rows[begin : begin + CHUNK]):
                if not isinstance(answer, str):
                    answers[len(errors)] = answer
                errors.append(answer if isinstance(answer, str) else None)
        missing = np.array([error is not None for error in errors], bool)
        return pa.table(
            {
                self._id: table[self._id],
                **self._columns(answers, missing),
                OUTCOME: np.where(missing, "error", "ok"),
                "error": pa.array(errors, pa.string()),
            }
        )

    def _answers(self, rows: list[list[str]]) -> list[npt.NDArray[Any] | str]:
        """The answer to each row, or the reason why there is none: the rows are halved until each bad row is found."""
        try:
            return list(self._ask(rows))
        except RequestError as error:
            if len(rows) == 1:
                return [str(error)]
        half = len(rows) // 2
        return self._answers(rows[:half]) + self._answers(rows[half:])

    def _ask(self, rows: list[list[str]]) -> npt.NDArray[Any]:
        items = [text for row in rows for text in row]
        inputs = Inputs(items, self._texts * len(rows), "rows", len(self._texts))
        return self.model.answer(self._question, strings(inputs))

    def _columns(self, answers: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The columns of the answer, null in the rows where it is `missing`."""
        mask = pa.array(missing)
        if self._question.task == "embed":
            values = pa.array(answers.astype(np.float32).ravel())
            vectors = pa.FixedSizeListArray.from_arrays(values, self._width, mask=mask)
            return {"embedding": vectors}
        label_type = pa.list_(pa.string()) if self.model.card.multi_label else pa.string()
        label = pa.array(self.model.chosen(answers), label_type, mask=missing)
        columns = [pa.array(column) for column in answers.T]
        names = list(self.model.labels)
        probabilities = pa.StructArray.from_arrays(columns, names, mask=mask)
        return {"label": label, "probabilities": probabilities}
