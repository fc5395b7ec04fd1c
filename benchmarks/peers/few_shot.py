"""SetFit and model2vec, each with its defaults, over all-MiniLM-L6-v2; in their own environment.

Standard input: JSON with `method`, `minilm` (a folder), `texts`, `labels` and `test` (texts). Output: JSON with
the labels of the test texts and the seconds of processor.
"""

import contextlib
import json
import sys
import time
from typing import Any


def setfit(minilm: str, texts: list[str], labels: list[str], test: list[str]) -> list[str]:
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    names = sorted(set(labels))
    model = SetFitModel.from_pretrained(minilm, labels=names, device="cpu")
    columns = {"text": texts, "label": [names.index(label) for label in labels]}
    arguments = TrainingArguments(report_to="none", save_strategy="no", logging_strategy="no")
    Trainer(model=model, args=arguments, train_dataset=Dataset.from_dict(columns)).train()
    return list(model.predict(test))


def model2vec(minilm: str, texts: list[str], labels: list[str], test: list[str]) -> list[str]:
    from model2vec.distill import distill
    from model2vec.train import StaticModelForClassification

    model = StaticModelForClassification.from_static_model(model=distill(minilm))
    model.fit(texts, labels)
    return [str(label) for label in model.predict(test)]


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    method = {"setfit": setfit, "model2vec": model2vec}[asked.pop("method")]
    with contextlib.redirect_stdout(sys.stderr):
        answers = method(**asked)
    json.dump({"labels": answers, "seconds": time.process_time()}, sys.stdout)


if __name__ == "__main__":
    main()
