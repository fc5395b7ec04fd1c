"""A text -> the pieces of a transformer's tokenizer, which splits the whole text, not word by word.

So an imported transformer reads the pieces that it was trained on. Texts are still counted, shown and cut in spaCy's
words; a piece belongs to the word with its first character.
"""

from bisect import bisect_right
from dataclasses import replace

import numpy as np

from heedful.text.arrays import Ints
from heedful.text.batch import Sentence
from heedful.text.parse import Parse
from heedful.text.pieces import Pieces


class WholeText(Pieces):
    """A tokenizer whose post-processor adds the pieces before and after a text."""

    def sentence_of(self, parse: Parse) -> Sentence:
        """The pieces of a text, up to its last word if it is cut, and up to the limit."""
        ids, words = self._encode(parse)
        room = self.limit - 2
        counts = np.bincount(words[:room], minlength=len(parse))
        with_delimiters = np.array([self.cls, *ids[:room], self.sep], np.int64)
        return Sentence(with_delimiters, parse.heads, counts)

    def fit(self, parse: Parse) -> Parse:
        """The text, cut to the words that have a piece within the limit."""
        ids, words = self._encode(parse)
        room = self.limit - 2
        if len(ids) <= room:
            return parse
        return replace(parse.first(int(words[room - 1]) + 1), cut=True)

    def _encode(self, parse: Parse) -> tuple[list[int], Ints]:
        """The ids of a text's pieces, and the word of each. Pieces before the first word belong to it."""
        text = parse.text[: parse.stops[-1]] if parse.cut and len(parse) else parse.text
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        starts = parse.starts
        words = [max(0, bisect_right(starts, start) - 1) for start, _ in encoding.offsets]
        return encoding.ids, np.array(words, np.int64)

    def _delimiters(self) -> tuple[int, int]:
        """Raises ValueError unless the post-processor adds a piece on each side."""
        ids = self._tokenizer.encode("").ids
        if len(ids) != 2:
            raise ValueError(f"the tokenizer adds {len(ids)} pieces to a text, not two")
        return ids[0], ids[1]
