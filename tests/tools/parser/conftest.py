"""Two gold sentences of a treebank, as documents and as a corpus."""

import pytest
from spacy.tokens import Doc

from tools.parser import corpus as corpora
from tools.parser import training, treebank
from tools.parser.corpus import Corpus

CONLLU = """\
# text = Kids can't wash.
1\tKids\tkid\tNOUN\tNNS\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\twash\twash\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# text = Big alot dog
1\tBig\tbig\tADJ\tJJ\t_\t4\tamod\t_\t_
2\ta\ta\tDET\tDT\t_\t3\tdet\t_\tSpaceAfter=No
3\tlot\tlot\tNOUN\tNN\t_\t4\tnmod\t_\t_
4\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_

"""
LABELS = ("ROOT", "advmod", "amod", "aux", "nmod", "nsubj", "punct")


@pytest.fixture(scope="session")
def gold(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    data = tmp_path_factory.mktemp("ud")
    (data / "en_ewt-ud-train.conllu").write_text(CONLLU)
    return treebank.sentences(data, "train")


@pytest.fixture(scope="session")
def corpus(gold: list[Doc]) -> Corpus:
    return corpora.gold(training.blank(), gold, LABELS)
