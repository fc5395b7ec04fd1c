"""The spaCy pipelines that can be loaded, and their fingerprints."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy

from heedful.text.errors import ParserError
from heedful.text.parse import ParseJob, Parser, fingerprint
from tests.builders import BuiltParser
from tests.process import ROOT


def test_the_shipped_arc_parser_reads_trees() -> None:
    """It does so without torch too, as in the serving install."""
    texts = "Two kids at a ballgame wash their hands.", "The dog barks. Nobody can't hear it!!"
    parser = Parser.load(ROOT / "bundles/parser")
    kids, two = parser.parse([ParseJob(text, 64, tree=True) for text in texts])
    assert kids.heads.dtype.char == np.dtype(np.int64).char, "orjson takes no other"
    by_name = {kids.tokens[i]: kids.tokens[head] for i, head in enumerate(kids.heads.tolist())}
    assert (by_name["kids"], by_name["hands"], by_name["wash"]) == ("wash", "wash", "wash")
    assert (by_name["Two"], by_name["their"]) == ("kids", "hands")
    assert kids.deps[kids.tokens.index("kids")] == "nsubj"
    roots = [two.tokens[i] for i, head in enumerate(two.heads.tolist()) if head == i]
    assert roots == ["barks", "hear"]


def test_what_is_no_pipeline_is_named_with_the_remedy(tmp_path: Path) -> None:
    remedy, blank = "name a folder or an installed package", tmp_path / "blank"
    spacy.blank("en").to_disk(blank)
    for missing, reason in (
        (tmp_path / "nothing", f"{tmp_path}/nothing.*{remedy}"),
        ("en_no_such_pipeline", f"en_no_such_pipeline.*{remedy}"),
        (tmp_path, "cannot load the spaCy pipeline"),
        (blank, "has no dependency parser"),
    ):
        with pytest.raises(ParserError, match=reason):
            Parser.load(missing)


@pytest.mark.parametrize(
    "file", ["config.cfg", "meta.json", "parser/model", "parser/cfg", "vocab/strings.json"]
)
@pytest.mark.parametrize("content", [b"", b"\x00garbage\xff{"], ids=["empty", "garbage"])
def test_a_broken_pipeline_is_refused(
    pipeline: BuiltParser, tmp_path: Path, file: str, content: bytes
) -> None:
    broken = shutil.copytree(pipeline.folder, tmp_path / "broken")
    (broken / file).write_bytes(content)
    with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
        Parser.load(broken)


def test_what_is_not_needed_is_not_run(
    pipeline: BuiltParser, parser: Parser, tmp_path: Path
) -> None:
    nlp = spacy.load(pipeline.folder)
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("merge_noun_chunks")  # would join tokens
    nlp.to_disk(tmp_path)
    job = ParseJob("Two kids wash their hands.", 256, True)
    (more,), (plain,) = Parser.load(tmp_path).parse([job]), parser.parse([job])
    assert more.tokens == plain.tokens
    assert more.heads.tolist() == plain.heads.tolist()


def test_the_fingerprint_is_of_names_and_bytes_alone(
    pipeline: BuiltParser, parser: Parser, tmp_path: Path
) -> None:
    assert (parser.name, parser.fingerprint) == (pipeline.name, pipeline.fingerprint)
    assert len(parser.fingerprint) == 64
    copy = shutil.copytree(pipeline.folder, tmp_path / "elsewhere")
    for file in sorted(path for path in copy.rglob("*") if path.is_file()):
        assert fingerprint(copy) == pipeline.fingerprint
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        assert fingerprint(copy) != pipeline.fingerprint
        file.write_bytes(content)
    (copy / "meta.json").rename(copy / "meta2.json")
    assert fingerprint(copy) != pipeline.fingerprint
