"""The Python of docs/clients.md works as printed."""

import re
from pathlib import Path

import numpy as np

PAGE = Path("docs/clients.md").read_text(encoding="utf-8")


def test_the_openai_example_runs(shipped: str) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(example.replace("http://localhost:8000", shipped), names)
    vectors = names["vectors"]
    assert isinstance(vectors, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert abs(vectors[0] @ vectors[1]) < 0.999
