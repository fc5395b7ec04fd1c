"""What each command refuses: a message that names the fault and the remedy, and nothing is written."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from heedful.runtime.device import resolve
from tests.cli.conftest import Command, write_glove
from tests.process import ROOT
from tests.writing import write

KIDS = "'Two kids wash.'"
LABELS = ("entailment", "neutral", "contradiction")
LONG = "x" * 300
FILES = {
    "t.csv": "text,label,a\nbad,x,y\n",
    "t.jsonl": '{"text": "dog", "n": 1}\n',
    "long.csv": f"text\ntwo kids\n{'dog ' * 20}\n",
    "upper.csv": "id,Body\n",
    "also.csv": "n,n,text\n1,2,bad\n",
    "score.csv": "score,text\n1,bad\n",
    "premise.csv": "premise\nbad\n",
    "other.csv": "text,label\nbad,Negativ\n",
    "none.csv": "text,label\n,negative\n",
    "mixed.jsonl": '{"text": "bad"}\n' * 600 + '{"text": "bad", "note": "new"}\n',
    "high.jsonl": '{"a": "x", "b": "y", "s": "high"}\n',
    "nan.jsonl": '{"a": "x", "b": "y", "s": "nan"}\n',
    "pair.jsonl": '{"a": "x", "b": "y"}\n',
    "half.jsonl": '{"a": "x", "s": 1}\n',
    "texts.txt": "a text\n" * 3,
    "texts.npy": "a\nb\n",
    "notes/thesis.md": "years of work",
    "there.npy": "",
    "stars.csv": "text,label\n"
    + "".join(f"film {i},{('bad', 'good')[i % 2]}\n" for i in range(40)),
    "upper_labels.csv": "text,label\nfine,GOOD\npoor,BAD\n",
    "few.csv": "a,b,label\n" + "".join(f"film {i},film,{LABELS[i % 3]}\n" for i in range(6)),
    "pairs.csv": "a,b,label\n" + "".join(f"film {i},film,{LABELS[i % 3]}\n" for i in range(30)),
}
PAIR = "--pair-columns a,b"
IDS = "--id-column key"
NO_GPU = "device is cuda, but torch sees no GPU: train with --device cpu$"
REFUSED = {
    "serve {}": [
        ("--port http", r"HEEDFUL_PORT \(--port\): 'http' is invalid"),
        ("--api-key 'two words'", r"HEEDFUL_API_KEY \(--api-key\): use printable ASCII"),
        ("--models none", "there is no folder none: name one that .*pip install dist/heedful_bund"),
        ("--max-queue 10 --max-batch-inputs 11", "a full request could never be admitted"),
    ],
    "embed {}": [
        ("t.csv --out v.npy --dimensions 9", "--dimensions is 9, tiny-flat has 1 to 8"),
        ("t.jsonl --out v.npy --id-column n", "--id-column: v.npy holds vectors alone"),
        ("texts.txt --out v.jsonl --id-column n", "--id-column: texts.txt is plain text"),
        ("t.csv --out there.npy", "there.npy exists: remove it, or name another file"),
        ("long.csv --out v.npy", "long.csv:3: the text has 20 tokens and .*--on-error"),
        # Before the models are loaded:
        ("nowhere.txt --out v.npy --models none", "cannot read nowhere.txt: No such file"),
        ("notes/thesis.md --out v.npy --models none", "thesis.md: the suffix is none of .jsonl, "),
        ("- --out v.txt --models none", "v.txt: the suffix must be one of .jsonl, .jsonl.gz, .npy"),
        ("t.csv --out v.npy --actors 7", "--actors has a meaning only with --ray"),
        ("t.csv --out v --ray local --format csv", "--format has a meaning only without --ray"),
        ("t.csv --out v --ray local --on-error stop", "--on-error has a meaning only without --r"),
        # A folder that cannot be made:
        ("t.csv --out t.csv/v.npy", "cannot write t.csv/v.npy.part: File exists"),
        (f"t.csv --out {LONG}.npy", r"\[Errno 36\] File name too long: 'xxx"),
    ],
    "embed --ray local --out o {}": [
        ("c.parquet --text-column body", "--ray needs --id-column"),
        (f"c.parquet {IDS}", "no column 'text': it holds key, body, other; name another"),
        ("c.parquet --text-column key --id-column other", "column 'key' holds int64: it must hold"),
        ("c.parquet --text-column body --id-column body", "column 'body' is named twice: name one"),
        ("c.parquet --text-column body --id-column label", "'label' is a column of the answers"),
        (f"t.csv {IDS}", "t.csv is neither a Parquet file nor a folder of them"),
    ],
    # Ray would try for minutes:
    f"embed c.parquet --text-column body {IDS} --out o --ray {{}}": [
        ("127.0.0.1:1", r"--ray: no cluster answers at 127.0.0.1:1 \(.*refused\): start one there"),
        ("ray://127.0.0.1:1", "no cluster answers at ray://127.0.0.1:1"),
        ("127.0.0.1:many", "'127.0.0.1:many' is neither local, auto nor host:port"),
    ],
    "predict --out o.csv {}": [
        ("upper.csv --text-column body", r"no column 'body': .*; did you mean 'Body'\?; set --tex"),
        ("also.csv", "two columns 'n'"),
        ("score.csv", "score.csv:2: a column is named 'score', as one that is added: rename it"),
        ("mixed.jsonl", r"other columns than the rows before it .*write \.jsonl"),
        ("premise.csv --model tiny-nli", "no column 'hypothesis': .*; set --premise-column"),
        ("t.csv --out o.xlsx", "o.xlsx: the suffix must be one of .csv, .tsv, "),
        ("t.csv --model tiny-flat", "tiny-flat has no labels: give yours with --labels a,b,c"),
        ("t.csv --labels a,b --model tiny-sst2", "has its own, .*leave --labels or"),
        ("t.csv --labels a,b --premise-column a", "--labels are for one text a row"),
        ("t.csv --model tiny-sst2 --premise-column a", "reads one text a row: name its"),
        ("t.csv --id-column a", "--id-column has a meaning only with --ray"),
        ("t.csv --labels a,b --ray local", "--labels has a meaning only without --ray"),
    ],
    "evaluate --model tiny-sst2 {}": [
        ("other.csv", r"no row has a label of tiny-sst2, .*did you mean 'negative'\?"),
        ("score.csv", "no column 'label': .*; set --text-column or --label-column"),
        ("none.csv", "no row has a label of tiny-sst2, .*--label-column has none"),
    ],
    "explain --to o.html {}": [
        (f"{KIDS} --model nobody", "there is no bundle 'nobody'"),
        (f"{KIDS} --hypothesis {KIDS} --model tiny-sst2", "tiny-sst2 does not do nli"),
        ("' '", "text.* is blank"),
        (f"'{'kids ' * 300}'", "is longer than .*: shorten it$"),
        (f"{KIDS} --to x.pdf --models none", "a name that ends in .html"),
        (f"{KIDS} --to t.csv/x.html", "--to: cannot write t.csv/x.html"),
        (f"{KIDS} --model tiny-sst2 --priors word=false", "tiny-sst2 has no such prior"),
        (f"{KIDS} --priors word", "'word' is not name=true"),
        (f"{KIDS} --priors tree=false", "--priors: tree: Extra inputs are not permitted"),
        (f"{KIDS} --priors alpha=-1", "--priors: alpha: Input should be greater than or equal"),
    ],
    "selftest --url {}": [("http://127.0.0.1:9", r"no answer from http://127\.0\.0\.1:9")],
    "fit stars.csv --base tiny-flat --out o {}": [
        ("--out Stars", "--out: 'Stars' names no bundle"),
        ("--out {models}/tiny-flat", "--out: .* is also --base"),
        ("--out {models}/tiny-sst2 --vectors tiny-sst2", "--out: .* is also --vectors"),
        ("--out notes", "notes is not empty: name a new folder"),
        ("--base mine", "--base: there is no bundle 'mine' in .*tiny-flat"),
        ("--encoder bert", "--encoder: 'bert': known are .*ms-san"),
        ("--multi-label ';' --abstain 0.9", "--abstain is for one label a row"),
        ("--test upper_labels.csv", r"upper_labels\.csv has the labels BAD, GOOD, none of which"),
        ("--unlabelled stars.csv", "all texts of this file are labelled already"),
        ("--teacher mpnet", "--teacher labels the texts of --unlabelled"),
        ("--unlabelled t.csv --teacher nothing", "nothing is no sentence encoder: name minilm, mp"),
        ("--pair-columns text,text --vectors glove.txt", "pairs .* entailment, neutral, contra"),
    ],
    f"fit {PAIR} --base tiny-flat --out o {{}}": [
        ("few.csv", "same first text are held out together: give 10 different"),
        ("pairs.csv --class-weight balanced", "--class-weight is for one text a row"),
        ("pairs.csv --unlabelled pairs.csv", "--unlabelled is for one text a row"),
        ("pairs.csv --vectors glov", "--vectors: there is no bundle 'glov'"),
    ],
    f"train --device cuda --run o {ROOT}/configs/{{}}.toml": [("ms-san-snli", NO_GPU)],
    "distill {}": [
        ("minilm texts.txt --out 'My Model'", "names no bundle: use a-z, 0-9 and -"),
        ("minilm texts.txt --out mine", "different texts are too few: give 200 at least"),
        ("api.npy texts.txt --out mine", r"has the shape \(2, 2\), and there are 3 texts"),
        ("texts.npy texts.txt --out mine", "texts.npy is no array of vectors"),
    ],
    "tune tiny-flat --out o --score-column s {}": [
        ("high.jsonl", r"high\.jsonl:1: the score is 'high': give a number"),
        ("nan.jsonl", "the score is nan"),
        ("pair.jsonl", "no 's': the row has a, b"),
        ("half.jsonl", "no 'b': .*set --columns"),
    ],
}
ROWS = [
    (command.format(arguments), said)
    for command, rows in REFUSED.items()
    for arguments, said in rows
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the rows name."""
    folder = tmp_path_factory.mktemp("refused")
    write(folder, FILES)
    np.save(folder / "api.npy", np.eye(2))
    write_glove(folder)
    table = {"key": [1, 2], "body": ["a dog", "two kids"], "other": ["a", "b"]}
    parquet.write_table(pa.table(table), folder / "c.parquet")
    return folder


@pytest.mark.parametrize(("line", "said"), ROWS)
def test_it_is_refused_and_nothing_is_written(
    heedful: Command,
    folder: Path,
    models: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    said: str,
) -> None:
    if said == NO_GPU and resolve("auto") == "cuda":
        pytest.skip("there is a GPU")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HEEDFUL_MODELS", str(models))

    def files() -> dict[Path, bytes]:
        every = (path for one in (folder, models) for path in one.rglob("*"))
        return {path: path.read_bytes() if path.is_file() else b"" for path in every}

    before = files()
    refused = heedful(*shlex.split(line.format(models=models)))
    assert refused.returncode == 1
    message = refused.stderr.partition("heedful: ")[2].rstrip()
    assert re.search(said, message)
    assert all(line.startswith("caused by: ") for line in message.splitlines()[1:])
    assert files() == before
