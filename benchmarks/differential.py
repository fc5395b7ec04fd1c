"""The same requests to two trees' services and libraries: python -m benchmarks.differential OTHER_TREE

OTHER_TREE is a checkout whose kernels are built. 2,000 texts, hostile ones and lines of the data's folder `text`, and
malformed requests go through every route of both, and the texts through both libraries, with the bundles of
OTHER_TREE. Numbers may differ by 1e-5, everything else not at all. Prints a row a route, and the first differences.
"""

import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from tests.app.bodies import bodies, path_of
from tests.app.test_hostile import TEXTS
from tests.process import ROOT, Process

SEED = 1
TOLERANCE = 1e-5
TIMES = {"id", "created", "request_id"}
"""Fields that differ in any two answers."""
WORDS = (
    *(
        "two",
        "kids",
        "wash",
        "their",
        "hands",
        "the",
        "dog",
        "isn't",
        "good",
        "Mr.",
        "U.S.",
        "can't",
    ),
    *("not", "never", "film", "won't", "invoice", "450", "euros", "3pm", "http://a.b/c?d=1", "🐕"),
    *("l'été", "“quoted”", "<b>bold</b>", "&amp;", "naïve", "привет", "世界", "e-mail", "…", "!!"),
)
MALFORMED: tuple[bytes, ...] = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b'{"inputs": }',
    b'{"inputs": []}',
    b'{"inputs": ""}',
    b'{"inputs": 3}',
    b'{"inputs": [3]}',
    b'{"inputs": [["a", "b", "c"]]}',
    b'{"inputs": "a", "surprise": 1}',
    b'{"inputs": "a", "model": "nobody"}',
    b'{"inputs": "a", "model": 3}',
    b'{"inputs": "a", "dimensions": 0}',
    b'{"inputs": "a", "truncate": "yes"}',
    b'{"pairs": [{"premise": "a"}]}',
    b'{"premise": "a", "hypothesis": " "}',
    b'{"inputs": "\\ud800"}',
    b'{"inputs": "a\\u0000b"}',
    b'{"inputs": "' + b"dog " * 300 + b'"}',
    b"[" * 2000,
    b"\xff\xfe",
    json.dumps({"inputs": ["a"] * 3000}).encode(),
)
MODELS = {
    "/nli": "ms-san-nli",
    "/classify": "ms-san-sst2",
    "/relatedness": "ms-san-relatedness",
    "/predict": "ms-san-nli",
    "/explain": "ms-san-nli",
}
LIBRARY = """
import json, sys
import heedful
texts = json.load(open(sys.argv[1]))
vectors = heedful.load("ms-san-embed", models=sys.argv[2]).encode(texts)
labels = heedful.load("ms-san-sst2", models=sys.argv[2]).predict_proba(texts)
nli = heedful.load("ms-san-nli", models=sys.argv[2]).nli(list(zip(texts, texts[1:] + texts[:1])))
json.dump([vectors.tolist(), labels.tolist(), nli], open(sys.argv[3], "w"))
"""


def broad_lines(rng: random.Random, count: int) -> list[str]:
    """Lines of books, news, talk and others, equally many of each file; none where the data are missing."""
    files = sorted(Path(os.environ.get("HEEDFUL_DATA", "data")).glob("text/*/*.jsonl.gz"))
    lines: list[str] = []
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as rows:
            texts = [json.loads(row).get("text") for row in itertools.islice(rows, 2000)]
        texts = [text for text in texts if text]
        lines += rng.sample(texts, min(len(texts), count // len(files) + 1))
    return rng.sample(lines, min(len(lines), count))


def sample_texts(count: int) -> list[str]:
    """Plain and hostile texts, the same each time."""
    rng = random.Random(SEED)
    hostile = [text for text in TEXTS.values() if len(text) < 3000]
    texts = [*hostile, *broad_lines(rng, count // 2)]
    while len(texts) < count:
        words = rng.choices(WORDS, k=rng.randint(1, 40))
        joined = rng.choice((" ", " ", " ", "  ", "\n", ", ")).join(words)
        texts.append(rng.choice((joined, joined.upper(), joined + ".", joined.capitalize())))
    return texts[:count]


def requests(texts: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """Name, path and body of each request."""
    for i, text in enumerate(texts):
        for truncate in (False, True):
            for route, body in bodies(text, truncate=truncate, count=1 + i % 3).items():
                if i % 5 and route not in ("/embed", "/tokenize"):
                    continue  # a fifth of the texts for these routes, which share the reading of texts
                if route == "/v1/embeddings":
                    body["model"] = "ms-san-embed"
                elif route in MODELS:
                    body["model"] = MODELS[route]
                yield route, path_of(route, "ms-san-embed"), json.dumps(body).encode()
    for route in bodies(""):
        for malformed in MALFORMED:
            yield f"{route}, malformed", path_of(route, "ms-san-embed"), malformed


def same(first: Any, second: Any) -> bool:
    """Whether two answers are equal up to rounding, without the fields TIMES."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = (first.keys() | second.keys()) - TIMES
        return all(same(first.get(key), second.get(key)) for key in keys)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float | int) and isinstance(second, float | int):
        return abs(first - second) <= TOLERANCE
    return bool(first == second)


def answer(client: httpx.Client, path: str, body: bytes) -> tuple[int, Any]:
    """Status and JSON."""
    done = client.post(path, content=body, headers={"Content-Type": "application/json"})
    return done.status_code, done.json()


def start(tree: Path, bundles: Path, log: Path) -> Process:
    """The service of a tree."""
    flags = {"port": "0", "models": str(bundles), "processes": "1"}
    return Process(log, flags, {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}, cwd=tree)


def compare_services(other: Path, texts: list[str], out: Console) -> int:
    """How many answers differ."""
    totals: Counter[str] = Counter()
    differences: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trees = {"this": ROOT, "other": other}
        processes = {n: start(t, other / "bundles", Path(folder) / n) for n, t in trees.items()}
        clients = [httpx.Client(base_url=p.ready(), timeout=60) for p in processes.values()]
        try:
            for name, path, body in requests(texts):
                totals[name] += 1
                (status, here), (status_there, there) = (
                    answer(client, path, body) for client in clients
                )
                if status != status_there or not same(here, there):
                    differences.setdefault(name, []).append(
                        f"{body[:200]!r}: {status} {json.dumps(here)[:300]} | "
                        f"{status_there} {json.dumps(there)[:300]}"
                    )
        finally:
            for process in processes.values():
                process.close()
    out.print("| requests | sent | that differ |\n|---|---|---|")
    for name, sent in totals.items():
        out.print(f"| {name} | {sent} | {len(differences.get(name, []))} |")
    for name, examples in differences.items():
        for example in examples[:3]:
            out.print(f"{name}: {example}")
    return sum(map(len, differences.values()))


def compare_libraries(other: Path, texts: list[str], out: Console) -> int:
    """How many of the library's answers differ."""
    readable = [t for t in texts if t.strip() and "\0" not in t and t.isprintable()]
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(readable))
        for name, tree in (("this", ROOT), ("other", other)):
            output = Path(folder) / name
            command = [sys.executable, "-P", "-c", LIBRARY, file, other / "bundles", output]
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            subprocess.run(list(map(str, command)), env=environment, cwd=tree, check=True)
            answers.append(json.loads(output.read_text()))
    differ = 0
    for kind, here, there in zip(("encode", "predict_proba", "nli"), *answers, strict=True):
        wrong = sum(not same(a, b) for a, b in zip(here, there, strict=True))
        out.print(f"| library, {kind} | {len(here)} | {wrong} |")
        differ += wrong
    return differ


def main(
    other: Annotated[Path, typer.Argument(help="The other tree, with built kernels.")],
    texts: Annotated[int, typer.Option(help="How many texts.")] = 2000,
) -> None:
    """Compare this tree's answers with another's."""
    out = Console(soft_wrap=True, highlight=False, markup=False)
    sample = sample_texts(texts)
    differ = compare_services(other.resolve(), sample, out)
    differ += compare_libraries(other.resolve(), sample, out)
    raise typer.Exit(1 if differ else 0)


if __name__ == "__main__":
    typer.run(main)
