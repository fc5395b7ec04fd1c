"""Commands for this repository alone: the papers' tables and figures, their records, and the pages written from them.

`python -m tools` lists the commands. The wheel does not hold them.
"""

from heedful.training.data_folder import ADDRESSES

ADDRESSES.update(
    {
        "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/",
        "mnli": "https://cims.nyu.edu/~sbowman/multinli/ (multinli_1.0.zip)",
        "nli_counterfactual": "https://github.com/acmi-lab/counterfactually-augmented-data",
        "snli": "https://nlp.stanford.edu/projects/snli/ (snli_1.0.zip)",
        "sst5": "https://nlp.stanford.edu/sentiment/ (trainDevTestTrees_PTB.zip)",
        "r8": "https://ana.cachopo.org/datasets-for-single-label-text-categorization",
        "trec": "https://cogcomp.seas.upenn.edu/Data/QA/QC/",
        "everyday": "`python -m tools everyday` in a checkout, which makes it",
        "contrast": "`python -m tools contrast` in a checkout, which makes it",
        "cr": "https://github.com/facebookresearch/SentEval (data/downstream/get_transfer_data.bash)",
        "mteb_dev": "the repositories that its README names",
        "mpqa": "https://github.com/facebookresearch/SentEval (data/downstream/get_transfer_data.bash)",
        "news": "https://archive.ics.uci.edu/dataset/359/news+aggregator",
        "nli_newprotocols": "https://github.com/google-research-datasets/Textual-Entailment-New-Protocols",
        "nli_ling_in_loop": "https://github.com/Alicia-Parrish/ling_in_loop",
        "nli_semi_automatic_wiki": "https://github.com/nyu-mll/semi-automatic-nli",
        "nli_conj": "https://github.com/swarnaHub/ConjNLI",
        "subj": "https://github.com/facebookresearch/SentEval (data/downstream/get_transfer_data.bash)",
        "text": "the repositories that its README names",
        "ud": "https://github.com/UniversalDependencies/UD_English-EWT",
        "yelp": "https://www.yelp.com/dataset",
    }
)
