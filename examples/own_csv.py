"""A classifier from a table of your own: fit, save as a bundle, load it again. Needs heedful[sklearn]."""

import csv
import tempfile
from pathlib import Path

import heedful
from heedful.sklearn import HeedfulClassifier

TABLE = """text;team
My invoice is wrong;billing
I was charged twice;billing
Please refund the payment;billing
The parcel has not arrived;delivery
When does my order come?;delivery
The driver left it outside;delivery
"""

rows = list(csv.DictReader(TABLE.splitlines(), delimiter=";"))
texts, teams = [row["text"] for row in rows], [row["team"] for row in rows]
classifier = HeedfulClassifier("ms-san-embed", C=10).fit(texts, teams)
with tempfile.TemporaryDirectory() as folder:
    bundle = Path(folder) / "teams"
    # `heedful serve --models FOLDER` serves it, `heedful predict` labels a file
    classifier.save(bundle)
    with heedful.load(bundle) as model:
        new = ["You took the money from my card two times", "My package is late"]
        for text, team in zip(new, model.predict(new), strict=True):
            print(f"{text}: {team}")
