"""A text -> the pieces of a transformer as its own tokenizer splits the whole of it, not word by word.

So a transformer that was trained elsewhere reads what it was trained on. spaCy's words remain what is counted, shown
and cut; each piece belongs to the word that its first character is in.
"""

from bisect import bisect_right
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Ints
from heedful.text.batch import Sentence
from heedful.text.parse import Parse
from heedful.text.pieces import Pieces


class WholeText(Pieces):
    """A tokenizer whose post-processor says what stands before and after a text."""

    def sentence_of(self, parse: Parse) -> Sentence:
        """The pieces of a text, up to its last word where it is cut, and to the limit."""
        ids, words = self._encoded(parse)
        room = self.limit - 2
        counts = np.bincount(words[:room], minlength=len(parse))
        around = np.array([self.cls, *ids[:room], self.sep], np.int64)
        return Sentence(around, parse.heads, counts)

    def fit(self, parse: Parse) -> Parse:
        """The text, cut to the words that have a piece within the limit."""
        ids, words = self._encoded(parse)
        room = self.limit - 2
        if len(ids) <= room:
            return parse
        return replace(parse.first(int(words[room - 1]) + 1), cut=True)

    def known(self, sentence: Sentence) -> npt.NDArray[np.bool_]:
        """(L,) whether each word was split without [UNK]; a word in which no piece begins is known."""
        assert sentence.pieces is not None, "a sentence of pieces"
        unknown = sentence.ids[1:-1] == self._unknown
        words = np.repeat(np.arange(len(sentence)), sentence.pieces)
        found: npt.NDArray[np.bool_] = np.bincount(words, unknown, len(sentence)) == 0
        return found

    def _encoded(self, parse: Parse) -> tuple[list[int], Ints]:
        """The ids of a text's pieces, and the word of each: what stands before the first word belongs to that."""
        text = parse.text[: parse.stops[-1]] if parse.cut and len(parse) else parse.text
        found = self._tokenizer.encode(text, add_special_tokens=False)
        starts = parse.starts
        words = [max(0, bisect_right(starts, start) - 1) for start, _ in found.offsets]
        return found.ids, np.array(words, np.int64)

    def _marks(self) -> tuple[int, int]:
        """Raises ValueError where the post-processor does not put one piece on each side."""
        around = self._tokenizer.encode("").ids
        if len(around) != 2:
            raise ValueError(f"the tokenizer puts {len(around)} pieces around a text, not two")
        return around[0], around[1]
