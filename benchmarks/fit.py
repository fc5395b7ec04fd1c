"""`heedful fit` compared with ten lines of scikit-learn, on small samples of eight datasets.

    python -m benchmarks.fit                 # every dataset; vectors are kept in ~/.cache/heedful/fit
    python -m benchmarks.fit --tasks trec cr --sizes 8 16 --draws 3 --effort normal
    python -m benchmarks.fit --page          # only write docs/notes/fit.md's table from results/fit

`fit` is what `heedful fit --effort quick` chooses, by held-out rows of the sample alone, without and with texts of
the dataset's other training rows as `--unlabelled`; with `--effort normal` MiniLM fine-tuned on the sample labels
these texts too, which takes minutes a sample. No encoder is trained. The others are TF-IDF and frozen
all-MiniLM-L6-v2 under logistic regression, C = 1 and 10, the better of the two on the test rows. A call replaces the
samples that it measures; with `--missing` it goes on where an earlier one stopped.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks import fit_peers
from benchmarks.fit_data import SIZES, TASKS, Texts, VectorCache, draw, read
from heedful.cli.fit_candidate import Problem, best
from heedful.cli.fit_linear import MOST_UNLABELLED, LinearFit, Unlabelled, choose_unlabelled, embed
from heedful.files.atomic import write_file, write_json
from heedful.library.load import load
from heedful.runtime.bundles import bundle
from heedful.text.arrays import Floats
from heedful.text.parse import Parser
from heedful.training import assess, linear, teachers
from heedful.training.bag import word_keys
from heedful.training.data_folder import data_folder
from heedful.training.labelled_texts import Row
from heedful.training.linear import TeacherKind
from heedful.training.source_commit import source_commit

RESULTS = Path("results/fit")
PAGE = Path("docs/notes/fit.md")
MARKS = ("<!-- benchmarks.fit -->\n", "<!-- end -->\n")
PEER_MARKS = ("<!-- benchmarks.fit_peers -->\n", MARKS[1])
CACHE = Path.home() / ".cache/heedful/fit"
STRENGTHS = (1.0, 10.0)
SEED = 1
OURS: dict[str, tuple[TeacherKind, ...]] = {
    "fit": (),
    "fit --unlabelled, quick": ("frozen",),
    "fit --unlabelled": ("frozen", "fine-tuned"),
}
"""Way to call `fit` -> the teachers of its candidates."""
EFFORTS = {"quick": "fit --unlabelled, quick", "normal": "fit --unlabelled"}
"""The last of OURS that an effort measures."""
OTHERS = ("TF-IDF + LR", "MiniLM + LR")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, choices=SIZES)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--effort", default="quick", choices=tuple(EFFORTS))
    parser.add_argument("--missing", action="store_true", help="only samples without its figures")
    parser.add_argument("--base", type=Path, default=Path("bundles/ms-san-embed"))
    parser.add_argument("--parser", default="bundles/parser")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in () if options.page else options.tasks:
        for record in measure(name, options):
            write_json(RESULTS / f"{name}.json", record)
    records = {name: RESULTS / f"{name}.json" for name in TASKS}
    content = [json.loads(file.read_text()) for file in records.values() if file.exists()]
    replace_in_page(MARKS, table(content))
    if fit_peers.RESULT.exists():
        peers = json.loads(fit_peers.RESULT.read_text())
        replace_in_page(PEER_MARKS, peer_table(peers, content))


def replace_in_page(marks: tuple[str, str], text: str) -> None:
    before, _, rest = PAGE.read_text().partition(marks[0])
    after = rest.partition(marks[1])[2]
    content = before + marks[0] + text + marks[1] + after
    write_file(PAGE, lambda part: part.write_text(content))


def measure(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """After each sample the record so far: accuracies on the test rows, the choice of `fit`, and its seconds."""
    pool, test = read(name, data_folder())
    file = RESULTS / f"{name}.json"
    recorded = json.loads(file.read_text())["samples"] if file.exists() else []
    way = EFFORTS[options.effort]
    measured = {
        (each["size"], each["draw"]) for each in recorded if options.missing and way in each
    }
    numbered = [
        (size, number)
        for size in options.sizes
        for number in range(options.draws)
        if (size, number) not in measured
    ]
    samples = [(size, number, draw(pool, size, number)) for size, number in numbered]
    unlabelled = draw(pool, f"{MOST_UNLABELLED} rows", 0).texts
    texts = dict.fromkeys(
        [*test.texts, *(text for _, _, sample in samples for text in sample.texts), *unlabelled]
    )
    base = bundle.read(options.base)
    parses = Parser.load(options.parser).parse(list(texts), base.card.max_tokens, tree=False)
    tokens = dict(zip(texts, (parse.tokens for parse in parses), strict=True))
    vectors = vectors_of(list(texts), name, options.base, options.parser)
    record = {"task": name, "test_rows": len(test.texts)}
    arguments = f"--draws {options.draws} --effort {options.effort} --base {options.base}"
    commit = source_commit() or "unknown"
    for size, number, sample in samples:
        seed = SEED if options.effort == "normal" else None
        scores = fitted(name, sample, test, unlabelled, seed, base, tokens, vectors)
        scores |= baselines(sample, test, vectors["minilm"])
        key = {"size": size, "draw": number}
        recorded = [each for each in recorded if any(each[part] != key[part] for part in key)]
        command = f"python -m benchmarks.fit --tasks {name} --sizes '{size}' {arguments}"
        version = f"{base.card.name} {base.card.version}"
        source = {"base": version, "command": command, "commit": commit}
        recorded.append({**key, "rows": len(sample.texts), **scores, **source})
        recorded.sort(key=lambda each: (SIZES.index(each["size"]), each["draw"]))
        yield record | {"samples": recorded}


def fitted(
    name: str,
    sample: Texts,
    test: Texts,
    unlabelled: list[str],
    fine_tune: int | None,
    base: bundle.Bundle,
    tokens: dict[str, tuple[str, ...]],
    vectors: dict[str, dict[str, Floats]],
) -> dict[str, Any]:
    """The accuracy of the candidate that `fit` chooses in each of OURS, and the processor seconds of all."""
    started = time.process_time()
    labelled = zip(sample.texts, sample.labels, strict=True)
    rows = [Row(i, (text,), label) for i, (text, label) in enumerate(labelled)]
    problem = Problem.of(Path(name), rows, "")

    def sides(texts: list[str], by: str = "fit") -> tuple[list[tuple[str, ...]], Floats]:
        return [tokens[text] for text in texts], np.stack([vectors[by][text] for text in texts])

    chosen = choose_unlabelled(unlabelled, problem, seed=SEED)
    texts = [*sample.texts, *chosen]
    pool = Unlabelled(chosen, teachers.MINILM, sides(texts, "minilm")[1], fine_tune)
    fit = LinearFit.of(problem, base, *sides(texts), pool)
    assert fit.lesson is not None
    candidates = fit.candidates(assess.splits(problem.targets, sample.texts, seed=SEED), None)
    words, test_vectors = sides(test.texts)
    sentences = [fit.lexicon.sentence(row, np.arange(len(row))) for row in words]
    keys = [word_keys(sentence, len(fit.lexicon)) for sentence in sentences]
    test_texts = linear.Texts(keys, test_vectors)
    scores: dict[str, Any] = {}
    for way, kinds in OURS.items():
        if not set(kinds) <= set(fit.lesson.teachers):
            continue
        winner = best(
            [each for each in candidates if each.recipe and each.recipe.teacher in (None, *kinds)]
        )
        assert winner.recipe is not None
        answers = np.array(problem.labels)[
            fit.on_all_rows(winner.recipe).logits(test_texts).argmax(axis=1)
        ]
        scores[way] = float((answers == np.array(test.labels)).mean())
        scores[f"{way} chose"] = winner.name
    return scores | {
        "seconds": round(time.process_time() - started, 2),
        "unlabelled": len(pool.texts),
    }


def vectors_of(
    texts: list[str], name: str, base: Path, parser: str
) -> dict[str, dict[str, Floats]]:
    """Vectors of length 1 of each text, by the base ("fit") and by MiniLM, computed once."""

    def by_base(missing: Sequence[str]) -> Floats:
        with load(base, parser=parser, device="cpu") as model:
            return embed(model, missing)

    def by_minilm(missing: Sequence[str]) -> Floats:
        return teachers.load(teachers.MINILM).vectors(missing)

    card = bundle.read_card(base)
    version = f"{card.name}-{card.version}-{name}"
    by_encoder = {}
    for key, cache in {
        "fit": VectorCache(CACHE, version, by_base),
        "minilm": VectorCache(CACHE, f"minilm-{name}", by_minilm),
    }.items():
        vectors = cache(texts)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        by_encoder[key] = dict(zip(texts, unit, strict=True))
    return by_encoder


def baselines(sample: Texts, test: Texts, vectors: dict[str, Floats]) -> dict[str, float]:
    """The accuracies of scikit-learn's own classifiers."""
    tfidf = TfidfVectorizer(ngram_range=(1, 2))
    features = {
        OTHERS[0]: (tfidf.fit_transform(sample.texts), tfidf.transform(test.texts)),
        OTHERS[1]: tuple(np.stack([vectors[t] for t in side.texts]) for side in (sample, test)),
    }
    return {
        name: max(
            float(
                LogisticRegression(C=strength, max_iter=1000)
                .fit(train, sample.labels)
                .score(held, test.labels)
            )
            for strength in STRENGTHS
        )
        for name, (train, held) in features.items()
    }


def table(records: list[dict[str, Any]]) -> str:
    """Means over the samples, in percent, and the differences to the better of the others."""
    columns = [f"`{way}`" for way in OURS] + list(OTHERS) + [f"`{way}` - best" for way in OURS]
    lines = [
        f"| dataset | rows a class | {' | '.join(columns)} | seconds | samples |",
        "|---" * (len(columns) + 4) + "|",
    ]
    gains: dict[str, dict[str, list[float]]] = {way: defaultdict(list) for way in OURS}
    leads: dict[str, list[tuple[float, str]]] = {way: [] for way in OURS}
    for record in records:
        for size in SIZES:
            rows = [row for row in record["samples"] if row["size"] == size]
            if not rows:
                continue
            ours, others = ([_percent(rows, way) for way in ways] for ways in (OURS, OTHERS))
            first, best_other = others[0] or 0, max(value or 0 for value in others)
            for way, value in zip(OURS, ours, strict=True):
                if value is not None:
                    gains[way][size].append(value - first)
                    leads[way].append((value - best_other, f"{record['task']} {size}"))
            cells = [_cell(value, ".1f") for value in (*ours, *others)]
            cells += [_cell(value, "+.1f", best_other) for value in ours]
            seconds = mean(row["seconds"] for row in rows)
            lines.append(
                f"| {record['task']} | {size} | {' | '.join(cells)} | {seconds:.0f} | {len(rows)} |"
            )
    means = [
        f"`{way}` " + ", ".join(f"{size}: {mean(values):+.1f}" for size, values in by_size.items())
        for way, by_size in gains.items()
    ]
    bases: dict[str, set[str]] = defaultdict(set)
    for record in records:
        for row in record["samples"]:
            bases[row["base"]].add(row["size"])
    named = [
        f"{base} ({', '.join(sorted(sizes, key=SIZES.index))})" for base, sizes in bases.items()
    ]
    lines += [
        "",
        f"Ahead of TF-IDF + LR on the average of the rows measured, in points: {'; '.join(means)}. "
        f"Base, by rows a class: {', '.join(named)}.",
        "",
        "Between its worst and its best row, in points ahead of the better of TF-IDF + LR and MiniLM + LR: "
        f"{'; '.join(_extremes(way, values) for way, values in leads.items() if values)}.",
        "",
    ]
    return "\n".join(lines)


def _extremes(way: str, leads: list[tuple[float, str]]) -> str:
    """The rows with the smallest and the largest lead, and the number of rows that are measured."""
    (low, worst), (high, best_row) = min(leads), max(leads)
    below = sum(lead < -1 for lead, _ in leads)
    return (
        f"`{way}` {low:+.1f} ({worst}) to {high:+.1f} ({best_row}), "
        f"{below} of {len(leads)} rows more than 1 below"
    )


def _percent(rows: list[dict[str, Any]], way: str) -> float | None:
    """The mean accuracy; None unless every sample has one."""
    return 100 * mean(row[way] for row in rows) if all(way in row for row in rows) else None


def _cell(value: float | None, form: str, less: float = 0.0) -> str:
    return "" if value is None else f"{value - less:{form}}"


def peer_table(peers: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """Means over each peer's samples, in percent, with their number, and of `fit` over all of these samples."""
    ours = {
        (record["task"], row["size"], row["draw"]): row
        for record in records
        for row in record["samples"]
    }
    methods = fit_peers.METHODS
    columns = ["dataset", "rows a class", *methods, *(f"`{way}`" for way in OURS)]
    columns += [f"seconds, {method}" for method in methods] + ["samples"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in peers["samples"]:
        groups[row["task"], row["size"]].append(row)
    for (task, size), rows in groups.items():
        numbers = sorted({row["draw"] for row in rows})
        same = [ours[task, size, number] for number in numbers]
        cells = [_mean(rows, method, "accuracy", 100) for method in methods]
        cells += [_cell(_percent(same, way), ".1f") for way in OURS]
        cells += [_mean(rows, method, "seconds", 1) for method in methods]
        lines.append(f"| {task} | {size} | {' | '.join(cells)} | {len(numbers)} |")
    versions = ", ".join(f"{name} {version}" for name, version in peers["versions"].items())
    return "\n".join([*lines, "", f"{versions}.", ""])


def _mean(rows: list[dict[str, Any]], method: str, key: str, scale: float) -> str:
    values = [row[key] for row in rows if row["method"] == method]
    return f"{scale * mean(values):.1f} ({len(values)})" if values else "not run"


if __name__ == "__main__":
    main()
