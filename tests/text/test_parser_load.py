"""Which spaCy pipelines are taken, and what identifies one."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy

from heedful.text.errors import ParserError
from heedful.text.parse import ParseJob, Parser, fingerprint
from tests.builders import BuiltParser
from tests.process import ROOT


def test_name_and_fingerprint_are_the_pipelines(pipeline: BuiltParser) -> None:
    parser = Parser.load(pipeline.folder)
    assert parser.name == pipeline.name
    assert parser.fingerprint == pipeline.fingerprint
    assert len(parser.fingerprint) == 64


def test_the_shipped_arc_parser_reads_trees() -> None:
    """In the serving install too, which has no torch."""
    parser = Parser.load(ROOT / "bundles/parser")
    kids, two = parser.parse(
        [
            ParseJob("Two kids at a ballgame wash their hands.", 64, tree=True),
            ParseJob("The dog barks. Nobody can't hear it!!", 64, tree=True),
        ]
    )
    assert kids.heads.dtype.char == np.dtype(np.int64).char, "orjson takes no other"
    by_name = {kids.tokens[i]: kids.tokens[head] for i, head in enumerate(kids.heads.tolist())}
    assert (by_name["kids"], by_name["hands"], by_name["wash"]) == ("wash", "wash", "wash")
    assert (by_name["Two"], by_name["their"]) == ("kids", "hands")
    assert kids.deps[kids.tokens.index("kids")] == "nsubj"
    assert [two.tokens[i] for i, head in enumerate(two.heads.tolist()) if head == i] == [
        "barks",
        "hear",
    ]


def test_a_pipeline_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    for missing in (tmp_path / "nothing", "en_no_such_pipeline"):
        with pytest.raises(ParserError, match=r"name a folder or an installed package") as caught:
            Parser.load(missing)
        assert str(missing) in str(caught.value)


def test_an_empty_folder_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
        Parser.load(tmp_path)


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ParserError, match="has no dependency parser"):
        Parser.load(tmp_path / "blank")


@pytest.mark.parametrize(
    "file", ["config.cfg", "meta.json", "parser/model", "parser/cfg", "vocab/strings.json"]
)
@pytest.mark.parametrize("content", [b"", b"\x00garbage\xff{"], ids=["empty", "garbage"])
def test_a_broken_pipeline_is_refused(
    pipeline: BuiltParser, tmp_path: Path, file: str, content: bytes
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(pipeline.folder, broken)
    (broken / file).write_bytes(content)
    with pytest.raises(ParserError, match="cannot load the spaCy pipeline"):
        Parser.load(broken)


def test_what_is_not_needed_is_not_run(pipeline: BuiltParser, tmp_path: Path) -> None:
    nlp = spacy.load(pipeline.folder)
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("merge_noun_chunks")  # would join tokens
    nlp.to_disk(tmp_path / "more")
    job = ParseJob("Two kids wash their hands.", 256, True)
    (more,), (plain,) = (
        Parser.load(path).parse([job]) for path in (tmp_path / "more", pipeline.folder)
    )
    assert more.tokens == plain.tokens
    assert more.heads.tolist() == plain.heads.tolist()


def test_the_fingerprint_is_of_names_and_bytes_alone(pipeline: BuiltParser, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(pipeline.folder, copy)
    assert fingerprint(copy) == pipeline.fingerprint
    for file in sorted(path for path in copy.rglob("*") if path.is_file()):
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        assert fingerprint(copy) != pipeline.fingerprint
        file.write_bytes(content)
    assert fingerprint(copy) == pipeline.fingerprint
    (copy / "meta.json").rename(copy / "meta2.json")
    assert fingerprint(copy) != pipeline.fingerprint
