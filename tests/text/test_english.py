"""Splits by the rules; each token is a part of the text."""

import pytest
import spacy
from spacy.language import Language

from heedful.text import english


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.tokenizer = english.rules(nlp)
    return nlp


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Wow!!! really?!", "Wow !!! really ?!"),
        ("ok...? *** ==== $$$ <<a>>", "ok ...? *** ==== $$$ << a >>"),
        ("DON'T I'VE mama`s", "DO N'T I 'VE mama `s"),
        ("wanna Alot AND/OR", "wan na A lot AND / OR"),
        ("e-mail pre-war non-human well-known", "e-mail pre-war non-human well - known"),
        ("call 713-853-3989 or 345-9945", "call 713-853-3989 or 345-9945"),
        ("from 2001-2002, 10-20 people", "from 2001 - 2002 , 10 - 20 people"),
        ("AK-47 B-12", "AK - 47 B - 12"),
        ("at 7:30PM 65k 2bn", "at 7:30 PM 65 k 2 bn"),
        ("-for Vince- --Sally", "- for Vince - -- Sally"),
        ('account(s) said"no', 'account ( s ) said " no'),
        ("good.<br /><br />I<br>am", "good . <br /> <br /> I <br> am"),
        ("Lt. Sat. dept. he sat.", "Lt. Sat. dept. he sat ."),
        ("5'11 tall; see http://a.com/b-c?d=1.", "5 ' 11 tall ; see http://a.com/b-c?d=1 ."),
    ],
)
def test_tokens(nlp: Language, text: str, tokens: str) -> None:
    assert [token.text for token in nlp(text)] == tokens.split()


@pytest.mark.parametrize("run", ["!", "(!", "-", "=.", "<br", "a-", "1-", "9k", "n't", "'", "/>"])
def test_long_runs_are_read(nlp: Language, run: str) -> None:
    """Runs are as long as heedful.text.tokenize gives to the tokenizer; cubic rules would take minutes."""
    text = (run * 500)[:500] + "x"
    assert nlp.make_doc(text).text == text


def test_other_rules_of_spacy_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    monkeypatch.setattr(nlp.Defaults, "infixes", ["x"])
    with pytest.raises(ValueError, match="not those of spaCy"):
        nlp.tokenizer = english.rules(nlp)
