"""docs/library.md and docs/library.ipynb: their code runs, from the import to a served classifier."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.process import ROOT, output

pytestmark = pytest.mark.slow

CELLS = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        shown = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names) if last else None
        print(shown._repr_html_()[:7] if hasattr(shown, "_repr_html_") else repr(shown), flush=True)
"""
"""Runs a notebook's cells and prints what each shows. Jupyter itself would bring twenty packages."""


def test_the_notebook_runs_from_the_import_to_a_served_classifier() -> None:
    shown = output(sys.executable, "-c", CELLS, "docs/library.ipynb")
    assert "<iframe" in shown
    assert "(('account', 'delivery'), '" in shown
    assert shown.endswith("'delivery'\n")


def test_the_pages_python_runs_and_the_saved_bundle_is_where_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    where = {"HEEDFUL_MODELS": str(ROOT / "bundles"), "PYTHONPATH": paths}
    output(sys.executable, script, cwd=tmp_path, **where)
    assert not (ROOT / "classifiers").exists()
    card = json.loads((tmp_path / "classifiers/ms-san-mood/card.json").read_text())
    assert card["labels"] == ["bad", "good"]
