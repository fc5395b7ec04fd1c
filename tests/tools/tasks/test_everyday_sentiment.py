"""Sentences about things and services, emoji, facts and requests: right by construction."""

import re
import tomllib
from pathlib import Path

from tools.tasks.everyday_sentiment import DEV, FILE, TRAIN
from tools.tasks.templates import HERE, SENTIMENT, from_templates

NEGATIVE, NEUTRAL, POSITIVE = 0, 1, 2


def test_every_template_of_train_has_words_for_its_slots() -> None:
    examples = from_templates(FILE, "train", 3_000, SENTIMENT)
    assert len(examples) == 3_000
    assert not [one for one in examples if re.search(r"[{}_]", one.texts[0])]
    assert {one.label for one in examples} == {NEGATIVE, NEUTRAL, POSITIVE}


def test_dev_shares_no_sentence_template_or_emoji_with_train() -> None:
    content = tomllib.loads((HERE / FILE).read_text("utf-8"))
    lines = [set(content[part]["templates"].strip().splitlines()) for part in content]
    assert not lines[0] & lines[1]
    signs = [set(" ".join(content["train"][kind] for kind in ("smile", "frown")).split())]
    signs.append(set(" ".join(content["everyday"][kind] for kind in ("glad", "sad")).split()))
    assert not signs[0] & signs[1]
    dev = {one.texts for one in DEV.read(Path())}
    assert len(dev) == 300
    assert not dev & {one.texts for one in TRAIN[0].read(Path())}


def test_other_spellings_keep_words_and_labels() -> None:
    plain = {
        re.sub(r"[.!]+$", "", one.texts[0]).lower(): one.label for one in TRAIN[0].read(Path())
    }
    spelled = TRAIN[1].read(Path())
    assert len(spelled) > 9_000
    for one in spelled:
        key = re.sub(r"[.!]+$", "", one.texts[0]).lower()
        assert plain.get(key, one.label) == one.label
